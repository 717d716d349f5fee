#include "idl/method.h"
#include "node/core/counter/counter.h"
#include "node/core/favorite/erasure_row.h"
#include "node/core/favorite/favorite.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"

static err value_of(struct read_context *context, const struct favorite_key *key,
                    Holdfast__V1__PlayerCounter **ret_told)
{
    struct added_row row;

    err e = added_find(context->state, key, context->need, &row);
    if (e == ERR_CORRUPT)
        return read_damaged(context, ADDED_DAMAGE);
    if (e == ERR_OK)
        *ret_told = counter_told(context->arena, key->target, &row);
    return e;
}

static err counter_batch_get_player_counters_read(struct read_context *context,
                                                  const ProtobufCMessage *message,
                                                  ProtobufCMessage *reply)
{
    const Holdfast__V1__BatchGetPlayerCountersRequest *request = (const void *)message;
    Holdfast__V1__BatchGetPlayerCountersResponse *response = (void *)reply;
    struct favorite_key key = { .entity = context->entity };
    struct counter_rule rule;
    err result = ERR_OK;
    bool hidden = false;

    err e = favorite_targets_check(context->arena, context->refusal, request->n_target_ids,
                                   request->target_ids);
    if (e == ERR_OK)
        e = counter_rule_read(context, request->counter, &rule);
    if (e == ERR_OK)
        e = erasure_read(context, &hidden);
    if (e != ERR_OK)
        return e;
    key.collection = rule.number;
    response->counters = arena_alloc(context->arena, sizeof(void *) * request->n_target_ids);
    for (size_t i = 0; i < request->n_target_ids; i++) {
        key.target = slice_from_text(request->target_ids[i]);
        if (hidden) {
            static const struct added_row none;
            response->counters[i] = counter_told(context->arena, key.target, &none);
            continue;
        }
        e = value_of(context, &key, &response->counters[i]);
        if (e == ERR_NEED || result == ERR_OK)
            result = e; /* Go on, so that every missing row is noted. */
    }
    response->n_counters = request->n_target_ids;
    response->as_of = as_of_text(context);
    return result;
}

const struct handler counter_batch_get_player_counters_handler = {
    .method = METHOD_BATCH_GET_PLAYER_COUNTERS,
    .read = counter_batch_get_player_counters_read,
};
