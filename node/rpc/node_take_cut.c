#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/goods/audit.h"
#include "node/rpc/methods.h"

static err node_take_cut_handle(struct apply_context *context, const ProtobufCMessage *message,
                                ProtobufCMessage *reply)
{
    const Holdfast__Internal__V1__TakeCutRequest *request = (const void *)message;
    Holdfast__Internal__V1__TakeCutResponse *response = (void *)reply;

    audit_tell(context->arena, context->meta, request->with_buckets, response);
    audit_cut(context->meta, request->cut);
    response->cut = context->meta->cut_id;
    return ERR_OK;
}

const struct handler node_take_cut_handler = {
    .method = METHOD_TAKE_CUT,
    .handle = node_take_cut_handle,
};
