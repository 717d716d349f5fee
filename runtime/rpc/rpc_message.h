/*
 * rpc_message: the one message of a request: out of its envelope, unpacked if it is compressed,
 * decoded. Every method takes exactly one. Private to runtime/rpc.
 *
 *     Connect         body = message, compressed as `content-encoding` says
 *     Connect stream  body = envelope + message, compressed as `connect-content-encoding` says
 *     gRPC, gRPC-Web  body = envelope + message, compressed as `grpc-encoding` says; gRPC-Web's
 * body may be compressed as a whole, too, as `content-encoding` says
 */
#ifndef RUNTIME_RPC_RPC_MESSAGE_H
#define RUNTIME_RPC_RPC_MESSAGE_H

#include "runtime/rpc/rpc_call.h"

/* Each is false when the call was answered with an error. */

/* The headers that name encodings. UNIMPLEMENTED: not gzip, not identity. */
bool rpc_message_check_encoding(struct rpc_call *call);
/*
 * The message's bytes, which live in the exchange's body. Unpacked, they are at most `unpacked_max`
 * and count against buffered_bytes_max like those that came as they are.
 *
 * UNIMPLEMENTED: none, or several. INTERNAL: flags that the protocol does not have.
 * INVALID_ARGUMENT: cut short, or not gzip. TOO_LARGE, THROTTLED: past one of the limits.
 */
bool rpc_message_open(struct rpc_call *call, size_t unpacked_max, struct slice *ret_message);
/* Answers with what a codec found wrong; `e` is its error. */
void rpc_message_fail(struct rpc_call *call, const struct codec_error *error, err e);
/* Opens and decodes it into call->request. */
bool rpc_message_decode(struct rpc_call *call);

#endif
