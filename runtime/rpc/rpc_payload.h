/*
 * rpc_payload: a message as the caller reads it: in the form of its request, packed if it may be,
 * in an envelope if the protocol has them. Knows no call once it has been told what the caller
 * reads: also for a thread beside the loop. Private to runtime/rpc.
 */
#ifndef RUNTIME_RPC_RPC_PAYLOAD_H
#define RUNTIME_RPC_RPC_PAYLOAD_H

#include "runtime/rpc/rpc_call.h"

#define RPC_KEPT_BYTES_MAX 1048576u /* A larger buffer is given back once it is empty. */

/* What the caller reads. */
struct rpc_payload {
    enum rpc_form form;
    enum json_form json_form;
    bool envelopes;
    bool may_pack;
};

struct rpc_payload rpc_payload_of(const struct rpc_call *call, bool may_pack);
/* Clears `out`; leaves room for the envelope. */
void rpc_payload_start(const struct rpc_payload *payload, struct buf *out);
void rpc_payload_put(const struct rpc_payload *payload, struct rpc_tools *tools,
                     const ProtobufCMessage *message, struct buf *out);
/* What was put between is all. Packs it if that makes it smaller: true, and the envelope says so,
 * too. */
bool rpc_payload_finish(const struct rpc_payload *payload, struct rpc_tools *tools,
                        struct buf *out);

/* An envelope of its own, at the end of `out`: where it begins, for rpc_envelope_finish. */
size_t rpc_envelope_start(struct buf *out);
void rpc_envelope_finish(struct buf *out, size_t from, uint8_t flags);

#endif
