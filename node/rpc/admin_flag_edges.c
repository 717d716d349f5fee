#include "holdfast/v1/admin.pb-c.h"
#include "idl/method.h"
#include "node/core/favorite/review.h"
#include "node/rpc/favorite_edge.h"
#include "node/rpc/methods.h"

typedef Holdfast__V1__FlagEdgesRequest flag_request;

static struct review_call call_of(const flag_request *request)
{
    return (struct review_call){
        .collection = request->collection,
        .count = request->n_target_ids,
        .targets = request->target_ids,
        .reason = request->reason,
        .all = request->all != 0,
        .after = request->after,
    };
}

static err admin_flag_edges_check(struct check_context *context, ProtobufCMessage *message)
{
    const struct review_call call = call_of((const void *)message);

    return review_check(context, &call, REVIEW_FLAG);
}

static err admin_flag_edges_handle(struct apply_context *context, const ProtobufCMessage *message,
                                   ProtobufCMessage *reply)
{
    const struct review_call call = call_of((const void *)message);
    Holdfast__V1__FlagEdgesResponse *response = (void *)reply;
    struct review_result result;

    err e = review_decide(context, &call, REVIEW_FLAG, &result);
    if (e != ERR_OK)
        return e;
    response->edges = result.edges;
    response->waiting = context->meta->review_count;
    response->next_after = arena_copy_text(context->arena, result.next);
    return ERR_OK;
}

const struct handler admin_flag_edges_handler = {
    .method = METHOD_FLAG_EDGES,
    .admits = ADMITS_SYSTEM,
    .check = admin_flag_edges_check,
    .footprint = favorite_footprint,
    .handle = admin_flag_edges_handle,
};
