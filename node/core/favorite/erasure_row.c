#include "node/core/favorite/erasure_row.h"

#include <inttypes.h>

#include "node/core/handler/refusal.h"

#define ROW_VERSION  1u
#define RETRY_MS_MIN 1000u
#define RETRY_MS_MAX 3600000u

void erasure_row_encode(const struct erasure_row *row, struct buf *out)
{
    buf_put_u8(out, ROW_VERSION);
    buf_put_u64(out, row->number);
    buf_put_u8(out, (uint8_t)row->state);
    buf_put_u64(out, row->erased_at_ms);
    buf_put_u64(out, row->purge_at_ms);
    buf_put_u64(out, row->ended_at_ms);
    buf_put_u64(out, row->due_ms);
    buf_put_u64(out, row->rows_done);
    if (row->cursor.size > 0)
        buf_append(out, row->cursor.data, row->cursor.size);
}

static bool is_over(Holdfast__V1__ErasureState state)
{
    return state == ERASURE_STATE(RESTORED) || state == ERASURE_STATE(PURGED);
}

/* A state that walks through rows has a place among those of its player. */
static bool cursor_is_sound(const struct erasure_row *row, struct slice key)
{
    if (row->cursor.size == 0)
        return true;
    if (is_over(row->state) || row->state == ERASURE_STATE(WITHDRAWN))
        return false;
    uint8_t table = row->cursor.data[0];
    return (table == TABLE_FAVORED || table == TABLE_ADDED) &&
           row->cursor.size <= STATE_KEY_BYTES_MAX && row->cursor.size >= key.size + 1 &&
           slice_equal(row_entity(row->cursor), row_entity(key));
}

static bool times_are_sound(const struct erasure_row *row)
{
    uint64_t max = INT64_MAX;

    return row->erased_at_ms <= row->purge_at_ms && row->purge_at_ms <= max &&
           row->ended_at_ms <= max && row->due_ms <= max && row->rows_done <= max &&
           (row->ended_at_ms > 0) == is_over(row->state) &&
           (row->due_ms > 0) == !is_over(row->state);
}

err erasure_row_decode(struct slice key, struct slice value, struct erasure_row *ret_row)
{
    struct reader reader = reader_from(value);
    struct erasure_row row;
    struct slice entity = row_entity(key);

    bool known = read_u8(&reader) == ROW_VERSION;
    row.number = read_u64(&reader);
    row.state = (Holdfast__V1__ErasureState)read_u8(&reader);
    row.erased_at_ms = read_u64(&reader);
    row.purge_at_ms = read_u64(&reader);
    row.ended_at_ms = read_u64(&reader);
    row.due_ms = read_u64(&reader);
    row.rows_done = read_u64(&reader);
    row.cursor = read_raw(&reader, reader_left(&reader));
    if (!known || reader_finish(&reader) != ERR_OK || row.number == 0 ||
        row.state < ERASURE_STATE(WITHDRAWING) || row.state > ERASURE_STATE(PURGED) ||
        entity.size > ENTITY_BYTES_MAX || !entity_has_kind(entity) || !times_are_sound(&row) ||
        !cursor_is_sound(&row, key))
        return ERR_CORRUPT;
    *ret_row = row;
    return ERR_OK;
}

err erasure_find(struct state *state, struct slice entity, struct need *need,
                 struct erasure_row *ret_row)
{
    struct row_key key;
    struct slice value = { 0 };

    *ret_row = (struct erasure_row){ 0 };
    row_key_erasure(&key, entity);
    enum state_found found = row_find(state, &key, need, &value);
    return row_found(found, found == STATE_PRESENT
                                ? erasure_row_decode(row_key_slice(&key), value, ret_row)
                                : ERR_OK);
}

bool erasure_hides(const struct erasure_row *row)
{
    return row->state == ERASURE_STATE(WITHDRAWING) || row->state == ERASURE_STATE(WITHDRAWN) ||
           row->state == ERASURE_STATE(PURGING);
}

/* ---- writes ---- */
static uint32_t retry_ms(const struct apply_context *context, const struct erasure_row *row)
{
    uint64_t at_ms = row->state == ERASURE_STATE(WITHDRAWN) ? row->purge_at_ms : 0;
    uint64_t left_ms = at_ms > context->owner_ms ? at_ms - context->owner_ms : 0;

    if (left_ms < RETRY_MS_MIN)
        return RETRY_MS_MIN;
    return left_ms < RETRY_MS_MAX ? (uint32_t)left_ms : RETRY_MS_MAX;
}

err erasure_admit(struct apply_context *context)
{
    struct slice entity = context->op->entity;
    struct erasure_row row;

    if (context->version < ERASURE_APPLY_VERSION)
        return ERR_OK;
    err e = erasure_find(context->state, entity, context->need, &row);
    if (e == ERR_CORRUPT)
        return apply_damaged(context, entity, ERASURE_DAMAGE);
    if (e != ERR_OK || row.number == 0 || is_over(row.state))
        return e;
    e = refuse(context->arena, context->refusal, CODE(QUARANTINED), "player_id",
               row.state == ERASURE_STATE(RESTORING)
                   ? "the erasure of the player was undone, and is being put back into counts"
                   : "the player is erased from favorites and counters, and not purged yet");
    context->refusal->retry_after_ms = retry_ms(context, &row);
    context->refusal->transient = true;
    return e;
}

err erasure_read(struct read_context *context, bool *ret_hidden)
{
    struct erasure_row row;

    err e = erasure_find(context->state, context->entity, context->need, &row);
    if (e == ERR_CORRUPT)
        return read_damaged(context, ERASURE_DAMAGE);
    *ret_hidden = e == ERR_OK && erasure_hides(&row);
    return e;
}

bool erasure_leaves_out(struct read_context *context, struct slice entity, err *result)
{
    struct erasure_row row;

    err e = erasure_find(context->state, entity, context->need, &row);
    if (e == ERR_NEED)
        *result = e;
    if (e == ERR_CORRUPT)
        damage_note(context->damage, entity, ERASURE_DAMAGE);
    return e != ERR_OK || erasure_hides(&row);
}
