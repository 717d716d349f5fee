/* One step of an erasure: a page of the player's edges, or of its additions. */
#include "node/core/codec/arena_proto.h"
#include "node/core/counter/addition_count.h"
#include "node/core/definition/player_rate.h"
#include "node/core/erasure/erasure.h"
#include "node/core/erasure/erasure_internal.h"
#include "node/core/favorite/edge.h"
#include "node/core/session/timers.h"

/* Keys of one page. Those that cannot be read are among them. */
struct page {
    struct arena *arena;
    struct slice *keys;
    uint32_t count;
};

static bool take(void *user, struct slice key, struct slice value)
{
    struct page *page = user;

    (void)value;
    page->keys[page->count++] = arena_copy(page->arena, key);
    return true;
}

/* Rows of one table behind `after`, in order: `rows_max` at most. ERR_NEED. */
static err page_read(struct apply_context *context, const struct row_key *prefix,
                     struct slice after, uint32_t rows_max, struct page *ret_page)
{
    const struct state_range range = {
        .prefix = row_key_slice(prefix),
        .after = after.size > prefix->size ? after : (struct slice){ 0 },
        .limit = rows_max,
    };

    *ret_page = (struct page){
        .arena = context->arena,
        .keys = arena_alloc(context->arena, rows_max * sizeof(struct slice)),
    };
    return state_range_visit(context->state, &range, context->need, take, ret_page);
}

/* ---- out of counts, and back ---- */

static err count_one(struct apply_context *context, struct slice key, bool in)
{
    struct favorite_edge edge = { .context = context };

    if (favorite_key_parse(key, &edge.key) != ERR_OK || edge.key.part == FAVORED_GONE)
        return ERR_OK;
    if (key.data[0] == TABLE_FAVORED)
        return in ? edge_put_back(&edge) : edge_withdraw(&edge);
    return in ? addition_count_in(context, &edge.key) : addition_count_out(context, &edge.key);
}

/* ---- removing ---- */

/* One of the player's targets goes from its count of them. A count that cannot be read goes as a
 * whole. ERR_NEED. */
static err targets_lower(struct apply_context *context, const struct favorite_key *of)
{
    struct favorites_row own;

    err e = favorites_find(context->state, of, context->need, &own);
    if (e == ERR_NEED)
        return e;
    if (e != ERR_OK)
        own = (struct favorites_row){ 0 };
    own.edges -= own.edges > 0;
    favorites_store(context, of, &own);
    return ERR_OK;
}

static err remove_one(struct apply_context *context, struct slice key)
{
    struct favorite_edge edge = { .context = context };

    state_delete(context->state, key);
    if (favorite_key_parse(key, &edge.key) != ERR_OK)
        return ERR_OK;
    return key.data[0] == TABLE_FAVORED ? edge_remove(&edge) : targets_lower(context, &edge.key);
}

/* ---- steps ---- */
static err deal_with(struct apply_context *context, const struct erasure_row *row, struct slice key)
{
    if (row->state == ERASURE_STATE(PURGING))
        return remove_one(context, key);
    return count_one(context, key, row->state == ERASURE_STATE(RESTORING));
}

/* The first so many keys change no more counts than one entry may. */
static uint32_t count_of_one_entry(const struct page *page)
{
    uint32_t counts = 0;
    struct favorite_key of = { 0 };

    for (uint32_t i = 0; i < page->count; i++) {
        if (favorite_key_parse(page->keys[i], &of) != ERR_OK || of.part == FAVORED_GONE)
            continue;
        if (counts++ == ENTRY_COUNTS_MAX)
            return i;
    }
    return page->count;
}

/* Since when edges of the shard wait, if the first of them may have gone. ERR_NEED. */
static err waiting_renew(struct apply_context *context, uint64_t waiting_before)
{
    if (context->meta->review_count == waiting_before)
        return ERR_OK;
    return review_since_renew(context, ERASURE_STEP_ROWS_MAX);
}

/* *ret_more: the walk is not at its end. ERR_NEED. */
static err walk(struct apply_context *context, struct erasure_row *row, uint32_t rows_max,
                bool *ret_more)
{
    enum table table = row->cursor.size > 0 ? (enum table)row->cursor.data[0] : TABLE_FAVORED;
    uint64_t waiting = context->meta->review_count;
    struct row_key prefix;
    struct page page;

    row_key_entity_prefix(&prefix, table, context->op->entity);
    err e = page_read(context, &prefix, row->cursor, rows_max, &page);
    uint32_t read = page.count;
    if (row->state != ERASURE_STATE(PURGING))
        page.count = count_of_one_entry(&page);
    for (uint32_t i = 0; i < page.count; i++) {
        err one = deal_with(context, row, page.keys[i]);
        if (one != ERR_OK)
            e = one; /* Go on, so that every missing row is noted. */
    }
    if (e == ERR_OK)
        e = waiting_renew(context, waiting);
    if (e != ERR_OK)
        return e;
    row->rows_done += page.count;
    bool goes_on = page.count < read || read == rows_max;
    *ret_more = goes_on || table == TABLE_FAVORED;
    if (goes_on) {
        row->cursor = page.keys[page.count - 1];
    } else if (table == TABLE_FAVORED) {
        row_key_entity_prefix(&prefix, TABLE_ADDED, context->op->entity);
        row->cursor = arena_copy(context->arena, row_key_slice(&prefix));
    }
    return ERR_OK;
}

/* How often the player changed edges lately: the last rows to go. What counts outcomes stays as
 * they do: without it the player would fill its share of the shard's room again. */
static err rates_remove(struct apply_context *context, uint32_t rows_max, bool *ret_more)
{
    struct row_key prefix, share = { 0 };
    struct page page;

    row_key_entity_prefix(&prefix, TABLE_RATE, context->op->entity);
    if (context->version >= ERASURE_LEAVES_SHARE_APPLY_VERSION)
        row_key_rate(&share, context->op->entity, OUTCOME_SHARE_SUBJECT);
    err e = page_read(context, &prefix, row_key_slice(&share), rows_max, &page);
    for (uint32_t i = 0; e == ERR_OK && i < page.count; i++)
        state_delete(context->state, page.keys[i]);
    *ret_more = page.count == rows_max;
    return e;
}

static void finish(struct apply_context *context, struct erasure_row *row,
                   Holdfast__V1__ErasureState state)
{
    uint64_t rows_done = row->rows_done;

    erasure_enter(context, row, state);
    row->rows_done = rows_done;
    row->due_ms = state == ERASURE_STATE(WITHDRAWN) ? row->purge_at_ms : 0;
    if (state != ERASURE_STATE(WITHDRAWN))
        row->ended_at_ms = context->owner_ms;
    if (state == ERASURE_STATE(PURGED))
        erasure_event(context, row);
}

static err step(struct apply_context *context, struct erasure_row *row, uint32_t rows_max)
{
    bool more = false;

    if (row->state == ERASURE_STATE(WITHDRAWN)) {
        erasure_enter(context, row, ERASURE_STATE(PURGING));
        return ERR_OK;
    }
    err e = walk(context, row, rows_max, &more);
    if (e == ERR_OK && !more && row->state == ERASURE_STATE(PURGING))
        e = rates_remove(context, rows_max, &more);
    if (e != ERR_OK)
        return e;
    if (more)
        row->due_ms = context->owner_ms + ERASURE_PACE_MS;
    else if (row->state == ERASURE_STATE(WITHDRAWING))
        finish(context, row, ERASURE_STATE(WITHDRAWN));
    else if (row->state == ERASURE_STATE(RESTORING))
        finish(context, row, ERASURE_STATE(RESTORED));
    else
        finish(context, row, ERASURE_STATE(PURGED));
    return ERR_OK;
}

/* It waits until a person has released the player, which sets its timer again. An undo goes on: no
 * edge can be repaired before its end. */
static bool is_held_back(const struct apply_context *context, const struct erasure_row *row)
{
    return context->version >= ERASURE_WAITS_APPLY_VERSION &&
           row->state != ERASURE_STATE(RESTORING) &&
           meta_find_quarantined(context->meta, player_id(context->player)) != NULL;
}

err erasure_step(struct apply_context *context, uint64_t number, uint32_t rows_max)
{
    const struct timer_row own = { .reservation_seq = ERASURE_TIMER_SEQ | number };
    struct erasure_row row;

    err e = erasure_load(context, &row);
    if (e != ERR_OK)
        return e;
    uint64_t due_before_ms = row.due_ms;
    if (row.number != number || due_before_ms == 0 || due_before_ms > context->owner_ms) {
        if (timers_forget(context, context->op->entity, &own) > 0)
            damage_note(context->damage, context->op->entity, ERASURE_DAMAGE);
        return ERR_OK;
    }
    if (is_held_back(context, &row)) {
        (void)timers_forget(context, context->op->entity, &own);
        return ERR_OK;
    }
    if (rows_max == 0 || rows_max > ERASURE_STEP_ROWS_MAX)
        rows_max = ERASURE_STEP_ROWS_MAX;
    e = step(context, &row, rows_max);
    if (e == ERR_OK)
        erasure_store(context, &row, due_before_ms);
    return e;
}
