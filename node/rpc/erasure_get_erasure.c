#include "holdfast/v1/erasure.pb-c.h"
#include "idl/method.h"
#include "node/core/erasure/erasure.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"

static err erasure_get_erasure_read(struct read_context *context, const ProtobufCMessage *message,
                                    ProtobufCMessage *reply)
{
    Holdfast__V1__GetErasureResponse *response = (void *)reply;
    struct erasure_row row;

    (void)message;
    err e = erasure_find(context->state, context->entity, context->need, &row);
    if (e == ERR_CORRUPT)
        return read_damaged(context, ERASURE_DAMAGE);
    if (e != ERR_OK)
        return e;
    response->erasure = erasure_told(context->arena, &row);
    response->as_of = as_of_text(context);
    return ERR_OK;
}

const struct handler erasure_get_erasure_handler = {
    .method = METHOD_GET_ERASURE,
    .read = erasure_get_erasure_read,
};
