/* Sessions, by fences: who holds a player, since when, and what ended it. Part of the model. */
#include <inttypes.h>
#include <string.h>

#include "holdfast/v1/session.pb-c.h"
#include "node/core/codec/arena_proto.h"
#include "runtime/base/check.h"
#include "tests/sim/model/model.h"

#define FENCE_GENERATION_BITS 40u
#define FENCES_MAX            8192u /* Of one player in one generation. */

bool model_is_held(const struct change *c, const struct player_model *player)
{
    return !incarnation_is_none(player->incarnation) &&
           !model_expired(c->shard, player->incarnation);
}

void model_session_ends(struct player_model *player, uint64_t index)
{
    CHECK(player->fence == 0 || model_fence_place(player->fence) < player->lost_capacity);
    if (player->fence > 0 && player->lost_at[model_fence_place(player->fence)] == 0)
        player->lost_at[model_fence_place(player->fence)] = index;
    player->incarnation = (struct incarnation){ 0 };
    player->granted_ms = 0;
    player->claim_ms = 0;
}

/* The first one of a generation, which began when a restored etcd was accepted. */
static bool generation_begins(uint64_t before, uint64_t fence)
{
    return fence >> FENCE_GENERATION_BITS > before >> FENCE_GENERATION_BITS &&
           (fence & (((uint64_t)1 << FENCE_GENERATION_BITS) - 1)) == 1;
}

uint64_t model_fence_place(uint64_t fence)
{
    uint64_t number = fence & (((uint64_t)1 << FENCE_GENERATION_BITS) - 1);

    CHECK(number < FENCES_MAX);
    return (fence >> FENCE_GENERATION_BITS) * FENCES_MAX + number;
}

void model_session_begins(struct change *c, struct slice body, struct op_model *op)
{
    struct arena *arena = &c->sim->oracle->arena;
    struct player_model *player = c->player;
    const Holdfast__V1__StartSessionResponse *response =
        (const void *)arena_unpack(arena, &holdfast__v1__start_session_response__descriptor, body);
    struct incarnation incarnation;
    uint64_t fence;

    CHECK(player == c->player && body.size > 0);
    CHECK(response != NULL);
    CHECK(token_parse(slice_from_text(response->token), &incarnation, &fence) == ERR_OK);
    if ((fence != player->fence + 1 && !generation_begins(player->fence, fence)) ||
        response->fence != fence)
        sim_fail(c->sim, c->number, "fence %" PRIu64 " is granted after %" PRIu64, fence,
                 player->fence);
    if (model_expired(c->shard, incarnation))
        sim_fail(c->sim, c->number, "a session is granted to an expired server");
    model_session_ends(player, c->entry->index);
    player->fence = fence;
    player->granted_ms = c->entry->owner_ms;
    player->renewals = 0;
    player->claim_ms = 0;
    player->incarnation = incarnation;
    op->fence = fence;
    if (model_fence_place(fence) >= player->lost_capacity) {
        uint64_t capacity = model_fence_place(fence) + 64;
        player->lost_at = mem_realloc(player->lost_at, sizeof(uint64_t) * capacity);
        memset(player->lost_at + player->lost_capacity, 0,
               sizeof(uint64_t) * (capacity - player->lost_capacity));
        player->lost_capacity = capacity;
    }
}

void model_session_decided(struct change *c)
{
    struct op_model *op = model_op(c->sim->oracle, c->op.entity, c->outcome->decided_op_id);

    if (c->op.method == METHOD_RESOLVE_OPERATION && c->outcome->decided_refused &&
        (op->state == OP_ABORTED || op->ms <= c->shard->floor_ms)) {
        c->player->claim_ms = 0;
        if (op->state == OP_PENDING) {
            c->sim->oracle->pending--;
            op->state = OP_ABORTED;
            op->index = c->entry->index;
        }
        return; /* Sealed while it was pending. */
    }
    if (op->state != OP_PENDING) {
        model_fail_op(c, op, "is decided, but was not pending");
        return;
    }
    c->sim->oracle->pending--;
    op->index = c->entry->index;
    op->dot = c->entry->dot;
    op->version = c->outcome->decided_version;
    if (c->outcome->decided_refused) {
        op->state = OP_REFUSED;
        op->refused_index = c->entry->index;
        if (c->op.method == METHOD_SESSION_DUE)
            c->player->claim_ms = 0;
        return;
    }
    const Holdfast__V1__StartSessionResponse *response = (const void *)arena_unpack(
        &c->sim->oracle->arena, &holdfast__v1__start_session_response__descriptor,
        c->outcome->decided_body);
    CHECK(response != NULL);
    if (response->stolen && model_is_held(c, c->player) && c->player->claim_ms > c->entry->owner_ms)
        model_fail_op(c, op, "takes the session before its holder's time");
    c->sim->counts.steals += c->op.method == METHOD_SESSION_DUE;
    op->state = OP_COMMITTED;
    model_session_begins(c, c->outcome->decided_body, op);
}
