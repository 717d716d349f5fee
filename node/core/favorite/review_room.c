#include "node/core/favorite/review_room.h"

#include <inttypes.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/handler/refusal.h"

#define RETRY_AFTER_MS 60000u /* A person has to look first. */

static err refuse_many(struct apply_context *context, const char *whose, uint64_t waiting,
                       uint32_t max)
{
    struct arena *arena = context->arena;
    err e =
        refuse(arena, context->refusal, CODE(THROTTLED), "player_id",
               "%" PRIu64 " edges of the %s wait for a review: the most that may", waiting, whose);

    context->refusal->limit = arena_printf(arena, "%" PRIu32, max);
    context->refusal->value = arena_printf(arena, "%" PRIu64, waiting);
    context->refusal->retry_after_ms = RETRY_AFTER_MS;
    context->refusal->transient = true;
    return e;
}

err review_room(struct apply_context *context, uint32_t waiting)
{
    uint64_t all = context->meta->review_count;

    if (waiting != REVIEW_BY_HAND && waiting >= REVIEW_PLAYER_MAX)
        return refuse_many(context, "player", waiting, REVIEW_PLAYER_MAX);
    if (all >= REVIEW_SHARD_MAX)
        return refuse_many(context, "shard", all, REVIEW_SHARD_MAX);
    return ERR_OK;
}
