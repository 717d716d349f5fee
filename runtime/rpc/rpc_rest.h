/*
 * rpc_rest: calls by a verb and a path under /v1/, and the document that describes them. From the
 * request on they go the way of every other call: the same headers, limits, handlers and errors.
 * Requests and answers are plain JSON. Private to runtime/rpc.
 *
 * A path that there is not is 404, a verb that it does not have 405 with Allow; a stale If-Match
 * is 412, a refusal by the state of things 409. Of a path that there is, a browser may ask by
 * OPTIONS which verbs a page of an allowed origin may use.
 */
#ifndef RUNTIME_RPC_RPC_REST_H
#define RUNTIME_RPC_RPC_REST_H

#include "runtime/rpc/rpc_call.h"

/* Finds the method that verb and path mean. False: the call was answered, with the document or with
 * an error. */
bool rpc_rest_open(struct rpc_call *call);
/* Makes the message of path, query, If-Match and body. False: answered with an error. */
bool rpc_rest_decode(struct rpc_call *call);

#endif
