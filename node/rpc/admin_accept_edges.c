#include "holdfast/v1/admin.pb-c.h"
#include "idl/method.h"
#include "node/core/favorite/review.h"
#include "node/rpc/favorite_edge.h"
#include "node/rpc/methods.h"

typedef Holdfast__V1__AcceptEdgesRequest accept_request;

static struct review_call call_of(const accept_request *request)
{
    return (struct review_call){
        .collection = request->collection,
        .number = request->collection_number,
        .count = request->n_target_ids,
        .targets = request->target_ids,
        .reason = request->reason,
    };
}

static err admin_accept_edges_check(struct check_context *context, ProtobufCMessage *message)
{
    const struct review_call call = call_of((const void *)message);

    return review_check(context, &call, REVIEW_ACCEPT);
}

static err admin_accept_edges_handle(struct apply_context *context, const ProtobufCMessage *message,
                                     ProtobufCMessage *reply)
{
    const struct review_call call = call_of((const void *)message);
    Holdfast__V1__AcceptEdgesResponse *response = (void *)reply;
    struct review_result result;

    err e = review_decide(context, &call, REVIEW_ACCEPT, &result);
    if (e != ERR_OK)
        return e;
    response->edges = result.edges;
    response->waiting = context->meta->review_count;
    return ERR_OK;
}

const struct handler admin_accept_edges_handler = {
    .method = METHOD_ACCEPT_EDGES,
    .admits = ADMITS_SYSTEM,
    .check = admin_accept_edges_check,
    .footprint = favorite_footprint,
    .handle = admin_accept_edges_handle,
};
