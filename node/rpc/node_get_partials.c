/* A shard's part of the counts of targets: a router adds up those of all shards. */
#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/favorite/favorite.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/count_subject.h"
#include "node/rpc/methods.h"

static err node_get_partials_read(struct read_context *context, const ProtobufCMessage *message,
                                  ProtobufCMessage *reply)
{
    const Holdfast__Internal__V1__GetPartialsRequest *request = (const void *)message;
    Holdfast__Internal__V1__GetPartialsResponse *response = (void *)reply;
    struct favorite_key edge = { 0 };
    err result = ERR_OK;

    err e = favorite_targets_check(context->arena, context->refusal, request->n_target_ids,
                                   request->target_ids);
    if (e == ERR_OK)
        e = count_subject_read(context, request->collection, request->is_counter, &edge.collection);
    if (e != ERR_OK)
        return e;
    response->counts = arena_alloc(context->arena, sizeof(uint64_t) * request->n_target_ids);
    for (size_t i = 0; i < request->n_target_ids; i++) {
        edge.target = slice_from_text(request->target_ids[i]);
        struct partial_row row;
        e = partial_find(context->state, &edge, context->need, &row);
        response->counts[i] = row.count;
        if (e == ERR_CORRUPT)
            e = read_damaged(context, PARTIAL_DAMAGE);
        if (e == ERR_NEED || result == ERR_OK)
            result = e; /* Go on, so that every missing row is noted. */
    }
    response->n_counts = request->n_target_ids;
    response->as_of = as_of_text(context);
    response->at_ms = (int64_t)context->now_unix_ms;
    response->collection_number = edge.collection;
    return result;
}

const struct handler node_get_partials_handler = {
    .method = METHOD_GET_PARTIALS,
    .read = node_get_partials_read,
};
