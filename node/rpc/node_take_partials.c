/* A home's side of totals: logs what was pulled from the shards of the edges. */
#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/top/top.h"
#include "node/rpc/methods.h"

typedef Holdfast__Internal__V1__TakePartialsRequest take_request;

static err node_take_partials_check(struct check_context *context, ProtobufCMessage *message)
{
    return top_take_check(context, (const take_request *)(const void *)message);
}

static void node_take_partials_footprint(const struct op *op, const ProtobufCMessage *message,
                                         struct need *keys)
{
    (void)op;
    top_take_footprint((const take_request *)(const void *)message, keys);
}

static err node_take_partials_handle(struct apply_context *context, const ProtobufCMessage *message,
                                     ProtobufCMessage *reply)
{
    return top_take(context, (const take_request *)(const void *)message, (void *)reply);
}

const struct handler node_take_partials_handler = {
    .method = METHOD_TAKE_PARTIALS,
    .check = node_take_partials_check,
    .footprint = node_take_partials_footprint,
    .handle = node_take_partials_handle,
};
