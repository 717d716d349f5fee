#include "node/core/erasure/erasure.h"

#include <inttypes.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/erasure/erasure_internal.h"
#include "node/core/handler/event.h"
#include "node/core/handler/refusal.h"

err erasure_check_version(struct check_context *context)
{
    if (context->meta->apply_version >= ERASURE_APPLY_VERSION)
        return ERR_OK;
    (void)refuse(context->arena, context->refusal, CODE(UNAVAILABLE), "",
                 "shard %" PRIu32 " applies version %" PRIu32 "; erasure begins with %u, once all "
                 "its replicas are updated",
                 context->shard, context->meta->apply_version, ERASURE_APPLY_VERSION);
    return ERR_INVALID;
}

/* ---- rows ---- */
err erasure_load(struct apply_context *context, struct erasure_row *ret_row)
{
    struct slice entity = context->op->entity;

    err e = erasure_find(context->state, entity, context->need, ret_row);
    if (e == ERR_CORRUPT)
        return apply_damaged(context, entity, ERASURE_DAMAGE);
    if (e == ERR_OK && ret_row->cursor.size > 0)
        ret_row->cursor = arena_copy(context->arena, ret_row->cursor);
    return e;
}

static void timer_set(struct apply_context *context, const struct erasure_row *row)
{
    struct row_key key;

    row_key_erasure_timer(&key, row->due_ms, context->op->entity, row->number);
    buf_clear(context->scratch);
    timer_row_encode(0, context->scratch);
    state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
}

void erasure_store(struct apply_context *context, const struct erasure_row *row,
                   uint64_t due_before_ms)
{
    struct slice entity = context->op->entity;
    struct row_key key;

    if (due_before_ms > 0) {
        row_key_erasure_timer(&key, due_before_ms, entity, row->number);
        state_delete(context->state, row_key_slice(&key));
    }
    if (row->due_ms > 0)
        timer_set(context, row);
    row_key_erasure(&key, entity);
    buf_clear(context->scratch);
    erasure_row_encode(row, context->scratch);
    state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
}

err erasure_timer_renew(struct apply_context *context)
{
    struct erasure_row row;

    if (context->version < ERASURE_APPLY_VERSION)
        return ERR_OK;
    err e = erasure_find(context->state, context->op->entity, context->need, &row);
    if (e == ERR_NEED)
        return e;
    if (e == ERR_OK && row.due_ms > 0)
        timer_set(context, &row);
    return ERR_OK;
}

void erasure_enter(struct apply_context *context, struct erasure_row *row,
                   Holdfast__V1__ErasureState state)
{
    row->state = state;
    row->cursor = (struct slice){ 0 };
    row->rows_done = 0;
    row->ended_at_ms = 0;
    row->due_ms = context->owner_ms;
}

void erasure_event(struct apply_context *context, const struct erasure_row *row)
{
    Holdfast__V1__ErasureEvent event = HOLDFAST__V1__ERASURE_EVENT__INIT;

    event.number = row->number;
    event.state = row->state;
    event.purge_at_ms = (int64_t)row->purge_at_ms;
    event_add(context, HOLDFAST__V1__EVENT_KIND__EVENT_KIND_ERASURE, context->op->entity,
              &event.base);
}

/* ---- what an operator asks for ---- */
static err refuse_restoring(struct apply_context *context)
{
    err e = refuse(context->arena, context->refusal, CODE(QUARANTINED), "player_id",
                   "an erasure of the player was undone, and is being put back into counts");

    context->refusal->retry_after_ms = 1000;
    context->refusal->transient = true;
    return e;
}

/* The grace period begins again. */
static void defer(struct erasure_row *row, uint64_t purge_at_ms)
{
    row->purge_at_ms = purge_at_ms;
    if (row->state == ERASURE_STATE(WITHDRAWN))
        row->due_ms = purge_at_ms;
}

/* The number is the player's version, which rises with each operation: also where no row tells the
 * one before. */
static void mark(struct apply_context *context, struct erasure_row *row, uint64_t purge_at_ms)
{
    row->number = context->player->version;
    row->erased_at_ms = context->owner_ms;
    row->purge_at_ms = purge_at_ms;
    erasure_enter(context, row, ERASURE_STATE(WITHDRAWING));
    erasure_event(context, row);
}

err erasure_begin(struct apply_context *context, int64_t grace_ms, struct erasure_row *ret_row)
{
    uint64_t purge_at_ms = context->owner_ms + (uint64_t)grace_ms;
    struct erasure_row row;

    err e = erasure_load(context, &row);
    if (e != ERR_OK)
        return e;
    uint64_t due_before_ms = row.due_ms;
    *ret_row = row;
    if (row.state == ERASURE_STATE(RESTORING))
        return refuse_restoring(context);
    if (row.state == ERASURE_STATE(PURGING))
        return ERR_OK;
    if (erasure_hides(&row)) {
        defer(&row, purge_at_ms);
    } else {
        mark(context, &row, purge_at_ms);
    }
    erasure_store(context, &row, due_before_ms);
    *ret_row = row;
    return ERR_OK;
}

void erasure_begin_again(struct apply_context *context)
{
    struct erasure_row row = { 0 };

    mark(context, &row, context->owner_ms + (uint64_t)ERASURE_GRACE_MS_DEFAULT);
    erasure_store(context, &row, 0);
}

err erasure_undo(struct apply_context *context, struct erasure_row *ret_row)
{
    struct erasure_row row;

    err e = erasure_load(context, &row);
    if (e != ERR_OK)
        return e;
    if (row.state != ERASURE_STATE(WITHDRAWING) && row.state != ERASURE_STATE(WITHDRAWN))
        return refuse(context->arena, context->refusal, CODE(NOT_FOUND), "player_id",
                      row.state == ERASURE_STATE(PURGING) || row.state == ERASURE_STATE(PURGED)
                          ? "the purge of the player has begun: nothing brings it back"
                          : "the player is not erased");
    uint64_t due_before_ms = row.due_ms;
    erasure_enter(context, &row, ERASURE_STATE(RESTORING));
    erasure_store(context, &row, due_before_ms);
    erasure_event(context, &row);
    *ret_row = row;
    return ERR_OK;
}

/* ---- telling ---- */
Holdfast__V1__Erasure *erasure_told(struct arena *arena, const struct erasure_row *row)
{
    Holdfast__V1__Erasure *told = (void *)arena_message(arena, &holdfast__v1__erasure__descriptor);

    told->number = row->number;
    told->state = row->state;
    told->erased_at_ms = (int64_t)row->erased_at_ms;
    told->purge_at_ms = (int64_t)row->purge_at_ms;
    told->ended_at_ms = (int64_t)row->ended_at_ms;
    told->rows_done = row->rows_done;
    return told;
}
