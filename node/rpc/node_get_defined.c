/* How far a shard has followed the definitions: a coordinator that was just elected asks. */
#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/definition/definition.h"
#include "node/rpc/methods.h"

static err node_get_defined_read(struct read_context *context, const ProtobufCMessage *message,
                                 ProtobufCMessage *reply)
{
    Holdfast__Internal__V1__GetDefinedResponse *response = (void *)reply;
    defined_head *head;

    (void)message;
    err e = definition_head_get(context->state, context->arena, context->need, &head);
    if (e != ERR_OK)
        return e;
    response->generation = head->generation;
    response->revision = head->revision;
    response->count = head->count;
    response->bytes = head->bytes;
    return ERR_OK;
}

const struct handler node_get_defined_handler = {
    .method = METHOD_GET_DEFINED,
    .read = node_get_defined_read,
};
