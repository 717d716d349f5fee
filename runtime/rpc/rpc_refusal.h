/*
 * rpc_refusal: calls that the server refuses by itself, before a handler knows of them: what broke
 * a limit or the grammar of HTTP, other verbs and Content-Types, malformed headers and messages.
 * Each is answered in the protocol that its Content-Type names, whatever the version of HTTP, so
 * that stock clients read the code that is meant. Private to runtime/rpc.
 */
#ifndef RUNTIME_RPC_RPC_REFUSAL_H
#define RUNTIME_RPC_RPC_REFUSAL_H

#include "runtime/rpc/rpc_call.h"

/* All of them end the call. */

void rpc_refuse(struct rpc_call *call, Holdfast__V1__ErrorCode code, const char *message,
                unsigned http_status);
/* INVALID_ARGUMENT; `value` is shortened. */
void rpc_refuse_field(struct rpc_call *call, const char *field, const char *limit,
                      struct slice value);
/* TOO_LARGE. */
void rpc_refuse_large(struct rpc_call *call, const char *message, const char *field,
                      uint64_t limit_bytes);
/* THROTTLED: a budget of memory for bodies is in use, which one `why` says. */
void rpc_refuse_busy(struct rpc_call *call, enum http_refused why);
/* The same for requests: 429. */
void rpc_refuse_throttled(struct rpc_call *call, const char *message);
/* 403: `host` is none of `names`. */
void rpc_refuse_host(struct rpc_call *call, const char *names, struct slice host);
/* 505: gRPC over HTTP/1.1. */
void rpc_refuse_version(struct rpc_call *call);
/* 405: RPCs are called by POST. */
void rpc_refuse_method(struct rpc_call *call);
/* 415. */
void rpc_refuse_type(struct rpc_call *call, const char *message);
/* The HTTP server's on_refused; `user` is the rpc_server. */
void rpc_refuse_http(void *user, struct http_exchange *exchange,
                     const struct http_refusal *refusal);

#endif
