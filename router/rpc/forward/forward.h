/*
 * forward: one mutation or read as a call to the owner of its entity's shard. Shared by forward.c
 * (whole requests) and batch.c (elements).
 */
#ifndef ROUTER_RPC_FORWARD_FORWARD_H
#define ROUTER_RPC_FORWARD_FORWARD_H

#include "router/rpc/request/request.h"
#include "router/rpc/request/router_state.h"

/* What to forward: a message of method->request, METHOD_MUTATION, _READ, _MEMBER_READ or
 * _MEMBER_WRITE. */
struct forward_message {
    const struct method_info *method;
    const ProtobufCMessage *message;
    struct slice encoded; /* Its protobuf bytes; empty: forward_prepare encodes it. */
    bool again;           /* Another round of a call that was counted for its player. */
};

/*
 * Fills `call` but for done and user; bytes go to the request's arena.
 *
 * ERR_INVALID: *ret_detail says what is wrong with the envelope; ERR_UNAVAILABLE: *ret_detail says
 * that the cluster is not known yet; ERR_FULL: too many calls for that player. Nothing was started.
 */
NODISCARD err forward_prepare(struct request *request, const struct forward_message *message,
                              struct caller_call *call, Holdfast__V1__ErrorDetail *ret_detail);

/* The request's message, which is of that method, to the owner of its entity's shard; ends the
 * request. */
void forward_as(struct request *request, const struct method_info *method);
/* The same; the answer is for `tell`, which ends the request. */
typedef void forward_tell_fn(struct request *request, struct slice answer);
void forward_as_told(struct request *request, const struct method_info *method,
                     forward_tell_fn *tell);

/* From `done`, or before caller_cancel: what the request's slow line tells of that call. */
void forward_count(struct request *request, const struct caller_call *call);

#endif
