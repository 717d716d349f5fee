/* Owner-made: the next step of a player's erasure. It looks again whether one is due. */
#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/erasure/erasure.h"
#include "node/rpc/methods.h"

static err node_erasure_due_handle(struct apply_context *context, const ProtobufCMessage *message,
                                   ProtobufCMessage *reply)
{
    const Holdfast__Internal__V1__ErasureDueRequest *request = (const void *)message;

    (void)reply;
    return erasure_step(context, request->number, request->rows_max);
}

const struct handler node_erasure_due_handler = {
    .method = METHOD_ERASURE_DUE,
    .handle = node_erasure_due_handle,
};
