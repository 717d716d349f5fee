/* A source's side of totals: removes what it keeps of targets without edges, once their homes have
 * logged that. */
#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/top/pull.h"
#include "node/rpc/methods.h"

typedef Holdfast__Internal__V1__ForgetPartialsRequest forget_request;

static err node_forget_partials_check(struct check_context *context, ProtobufCMessage *message)
{
    return pull_forget_check(context, (const forget_request *)(const void *)message);
}

static err node_forget_partials_handle(struct apply_context *context,
                                       const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    return pull_forget(context, (const forget_request *)(const void *)message, (void *)reply);
}

const struct handler node_forget_partials_handler = {
    .method = METHOD_FORGET_PARTIALS,
    .check = node_forget_partials_check,
    .handle = node_forget_partials_handle,
};
