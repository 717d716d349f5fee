#include "holdfast/v1/favorites.pb-c.h"
#include "idl/method.h"
#include "node/core/favorite/erasure_row.h"
#include "node/core/favorite/favorite.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"

static err status_of(struct read_context *context, const struct favorite_key *edge,
                     Holdfast__V1__FavoriteStatus **ret_status)
{
    struct favorite_row row;

    err e = favorite_find(context->state, edge, context->need, &row);
    if (e == ERR_CORRUPT)
        return read_damaged(context, FAVORITE_DAMAGE);
    if (e == ERR_OK)
        *ret_status = favorite_status(context->arena, edge->target, &row);
    return e;
}

/* All are on their way from memory before the first is looked at. */
static void prefetch(struct read_context *context, const struct favorite_key *of, size_t count,
                     char *const *targets)
{
    struct row_key key;

    for (size_t i = 0; i < count; i++) {
        row_key_favorite(&key, of->entity, of->collection, slice_from_text(targets[i]));
        state_prefetch(context->state, row_key_slice(&key));
    }
}

static err favorites_batch_get_status_read(struct read_context *context,
                                           const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const Holdfast__V1__BatchGetStatusRequest *request = (const void *)message;
    Holdfast__V1__BatchGetStatusResponse *response = (void *)reply;
    struct favorite_key edge = { .entity = context->entity };
    struct collection collection;
    err result = ERR_OK;
    bool hidden = false;

    err e = favorite_targets_check(context->arena, context->refusal, request->n_target_ids,
                                   request->target_ids);
    if (e == ERR_OK)
        e = collection_read(context, request->collection, &collection);
    if (e == ERR_OK)
        e = erasure_read(context, &hidden);
    if (e != ERR_OK)
        return e;
    edge.collection = collection.number;
    prefetch(context, &edge, request->n_target_ids, request->target_ids);
    response->statuses = arena_alloc(context->arena, sizeof(void *) * request->n_target_ids);
    for (size_t i = 0; i < request->n_target_ids; i++) {
        edge.target = slice_from_text(request->target_ids[i]);
        if (hidden) {
            response->statuses[i] = favorite_status(context->arena, edge.target, NULL);
            continue;
        }
        e = status_of(context, &edge, &response->statuses[i]);
        if (e == ERR_NEED || result == ERR_OK)
            result = e; /* Go on, so that every missing row is noted. */
    }
    response->n_statuses = request->n_target_ids;
    response->as_of = as_of_text(context);
    return result;
}

const struct handler favorites_batch_get_status_handler = {
    .method = METHOD_BATCH_GET_STATUS,
    .read = favorites_batch_get_status_read,
};
