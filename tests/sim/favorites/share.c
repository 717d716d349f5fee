/* The model keeps every outcome, and looks through all of them each time. */
#include "tests/sim/favorites/share.h"

#include <string.h>

#include "idl/error_code.h"
#include "node/core/codec/arena_proto.h"
#include "runtime/base/check.h"

#define SHARE_VERSION 10u
#define QUARTER_MS    900000u
#define FOUR_HOURS_MS 14400000u
#define DAY_MS        86400000u

static bool counts(const struct change *c)
{
    return applier_meta(c->shard->applier)->apply_version >= SHARE_VERSION;
}

static uint64_t share_max(const struct change *c)
{
    uint64_t part = applier_meta(c->shard->applier)->policy.operations_max / 200;

    return part > 50 ? part : 50;
}

static struct share_use_seen use_of(const struct change *c, const struct op_model *op)
{
    return (struct share_use_seen){
        .shard = c->number,
        .player = (uint32_t)(c->player - c->sim->oracle->players),
        .is_key = op->is_key,
        .at_ms = c->entry->owner_ms,
    };
}

/* When what was left then counts no more. */
static uint64_t end_of(const struct share_use_seen *use)
{
    if (use->is_key)
        return use->at_ms / FOUR_HOURS_MS * FOUR_HOURS_MS + FOUR_HOURS_MS + DAY_MS;
    return use->at_ms / QUARTER_MS * QUARTER_MS + 2 * QUARTER_MS;
}

/* How many count at this entry; *ret_end_ms: until when the first of them does. */
static uint64_t used_at(const struct change *c, const struct share_use_seen *now,
                        uint64_t *ret_end_ms)
{
    const struct favorites_sim *favorites = favorites_of(c->sim);
    uint64_t used = 0;

    *ret_end_ms = UINT64_MAX;
    for (uint32_t i = 0; i < favorites->share_count; i++) {
        const struct share_use_seen *use = &favorites->shares[i];
        if (use->shard != now->shard || use->player != now->player || use->is_key != now->is_key ||
            end_of(use) <= now->at_ms)
            continue;
        used++;
        *ret_end_ms = end_of(use) < *ret_end_ms ? end_of(use) : *ret_end_ms;
    }
    return used;
}

void share_used(const struct change *c, const struct op_model *op)
{
    struct favorites_sim *favorites = favorites_of(c->sim);
    const struct share_use_seen now = use_of(c, op);
    uint64_t end_ms;

    if (!counts(c) || c->was != OP_NONE)
        return;
    if (used_at(c, &now, &end_ms) >= share_max(c))
        model_fail_op(c, op, "leaves an outcome, and its player's share of the room is full");
    if (favorites->share_count == favorites->share_capacity) {
        favorites->share_capacity = favorites->share_capacity * 2 + 64;
        favorites->shares =
            mem_realloc(favorites->shares, sizeof *favorites->shares * favorites->share_capacity);
    }
    favorites->shares[favorites->share_count++] = now;
}

bool share_refused(const struct change *c, const struct op_model *op)
{
    const Holdfast__Internal__V1__Refusal *detail = (const void *)arena_unpack(
        &c->sim->oracle->arena, &holdfast__internal__v1__refusal__descriptor, c->outcome->body);
    const struct share_use_seen now = use_of(c, op);
    uint64_t end_ms;

    CHECK(detail != NULL);
    if (detail->code != CODE(THROTTLED) || strcmp(detail->field, "op_id") != 0)
        return false;
    c->sim->counts.shares_full++;
    uint64_t used = used_at(c, &now, &end_ms);
    if (!counts(c) || used < share_max(c))
        model_fail_op(c, op, "is refused for a share of the room that is not full");
    else if (detail->retry_after_ms != end_ms - now.at_ms)
        model_fail(c, "a full share tells another time to wait, ms", detail->retry_after_ms);
    return true;
}
