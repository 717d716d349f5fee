/*
 * rpc_answer: writes the answer to a call, in its protocol. Each function ends the call, but for a
 * stream's send; a large answer is made beside the loop first (rpc_work.h). Private to runtime/rpc.
 */
#ifndef RUNTIME_RPC_RPC_ANSWER_H
#define RUNTIME_RPC_RPC_ANSWER_H

#include "runtime/rpc/rpc_call.h"

/* A message of a stream that is longer is sent as it is: packing would hold up the loop. */
#define RPC_STREAM_PACK_BYTES_MAX 262144u

void rpc_answer_message(struct rpc_call *call, const ProtobufCMessage *message);
/* `response`: protobuf of the method's response, in which form the request may ask for it. What
 * cannot be decoded is told as an error, of a call that may have written as OUTCOME_UNKNOWN. */
void rpc_answer_encoded(struct rpc_call *call, struct slice response);
/* The same of what `source` puts. */
void rpc_answer_from(struct rpc_call *call, const struct buf_source *source);
/* `bytes` are protobuf, or JSON, as the request asks. */
void rpc_answer_bytes(struct rpc_call *call, struct slice bytes);
/* `http_status` 0: the code's own. */
void rpc_answer_error(struct rpc_call *call, const Holdfast__V1__ErrorDetail *detail,
                      unsigned http_status);
bool rpc_answer_stream_send(struct rpc_call *call, const ProtobufCMessage *message);
void rpc_answer_stream_end(struct rpc_call *call, const Holdfast__V1__ErrorDetail *detail);
/* An error of HTTP itself, as gRPC's clients read it: no body, and with `detail` in the headers
 * (may be NULL). */
void rpc_answer_bare(struct rpc_call *call, unsigned status,
                     const Holdfast__V1__ErrorDetail *detail);
/* A plain HTTP answer. */
void rpc_answer_plain(struct rpc_call *call, unsigned status, const char *content_type,
                      const char *body);
/* JSON that never changes; `packed` is the same by gzip, for callers who take it. False: there is
 * no room for so long an answer to this caller (http_waiting_fits), and nothing was sent. */
NODISCARD bool rpc_answer_document(struct rpc_call *call, struct slice plain, struct slice packed);
/* The answer to an OPTIONS request about a path that has these verbs. */
void rpc_answer_preflight(struct rpc_call *call, const char *verbs);

#endif
