#include "node/core/favorite/edge.h"

#include "node/core/favorite/erasure_row.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"

/* ---- rows ---- */
err favorite_find(struct state *state, const struct favorite_key *edge, struct need *need,
                  struct favorite_row *ret_row)
{
    struct row_key key;
    struct slice value = { 0 };

    *ret_row = (struct favorite_row){ 0 };
    row_key_favorite(&key, edge->entity, edge->collection, edge->target);
    enum state_found found = row_find(state, &key, need, &value);
    return row_found(found, favorite_row_decode(value, ret_row));
}

err favorites_find(struct state *state, const struct favorite_key *edge, struct need *need,
                   struct favorites_row *ret_row)
{
    struct row_key key;
    struct slice value = { 0 };

    *ret_row = (struct favorites_row){ 0 };
    row_key_favorites(&key, edge->entity, edge->collection);
    enum state_found found = row_find(state, &key, need, &value);
    return row_found(found, favorites_row_decode(value, ret_row));
}

static struct buf *fresh(struct apply_context *context)
{
    buf_clear(context->scratch);
    return context->scratch;
}

static void put(struct apply_context *context, const struct row_key *key)
{
    state_put(context->state, row_key_slice(key), buf_slice(context->scratch));
}

void favorites_store(struct apply_context *context, const struct favorite_key *edge,
                     const struct favorites_row *row)
{
    struct row_key key;

    row_key_favorites(&key, edge->entity, edge->collection);
    if (row->edges == 0 && row->gone == 0) {
        state_delete(context->state, row_key_slice(&key));
        return;
    }
    favorites_row_encode(row, fresh(context));
    put(context, &key);
}

err edge_find(struct favorite_edge *e)
{
    struct apply_context *context = e->context;

    e->row_read = favorite_find(context->state, &e->key, context->need, &e->row);
    e->own_read = favorites_find(context->state, &e->key, context->need, &e->own);
    e->partial_read = partial_find(context->state, &e->key, context->need, &e->partial);
    if (e->row_read == ERR_NEED || e->own_read == ERR_NEED || e->partial_read == ERR_NEED)
        return ERR_NEED;
    return ERR_OK;
}

err edge_check(const struct favorite_edge *e)
{
    struct apply_context *context = e->context;
    struct slice entity = e->key.entity;

    if (e->row_read != ERR_OK)
        return apply_damaged(context, entity, FAVORITE_DAMAGE);
    if (e->own_read != ERR_OK)
        return apply_damaged(context, entity, FAVORITES_DAMAGE);
    if (e->partial_read != ERR_OK)
        return apply_damaged(context, (struct slice){ 0 }, PARTIAL_DAMAGE);
    bool waits = e->row.favorited && !favorite_edge_counts(&e->row);
    bool counted = waits ? e->own.flagged > 0 : e->own.edges > e->own.flagged;
    if (e->row.favorited && (e->own.edges == 0 || !counted))
        return apply_damaged(context, entity, FAVORITES_DAMAGE);
    if (edge_was_there(e) && !e->row.favorited && e->own.gone == 0)
        return apply_damaged(context, entity, FAVORITES_DAMAGE);
    if (favorite_edge_counts(&e->row) && e->partial.count == 0)
        return apply_damaged(context, (struct slice){ 0 }, PARTIAL_DAMAGE);
    return ERR_OK;
}

static void edge_store(struct favorite_edge *e)
{
    struct row_key key;

    row_key_favorite(&key, e->key.entity, e->key.collection, e->key.target);
    favorite_row_encode(&e->row, fresh(e->context));
    put(e->context, &key);
}

/* Where the edge stands in its player's lists. */
static void listed_key(const struct favorite_edge *e, struct row_key *key)
{
    char part = e->row.favorited ? FAVORED_EDGES : FAVORED_GONE;

    row_key_favored_prefix(key, e->key.entity, e->key.collection, part);
    row_key_favored_add(key, part, e->row.at_ms, e->key.target);
}

static void listed_store(struct favorite_edge *e)
{
    struct row_key key;

    listed_key(e, &key);
    favored_row_encode(e->row.ver, fresh(e->context));
    put(e->context, &key);
}

static void listed_delete(struct favorite_edge *e)
{
    struct row_key key;

    listed_key(e, &key);
    state_delete(e->context->state, row_key_slice(&key));
}

static void favorer_change(struct favorite_edge *e, bool stands)
{
    struct row_key key;

    row_key_favorer_prefix(&key, e->key.collection, e->key.target);
    row_key_favorer_add(&key, e->key.entity);
    if (!stands) {
        state_delete(e->context->state, row_key_slice(&key));
        return;
    }
    favorer_row_encode(&e->row, fresh(e->context));
    put(e->context, &key);
}

/* An edge that goes, waits or is withdrawn is taken from the hour in which it was made, `at_ms` of
 * its row; one that is accepted or put back is counted there. */
static err partial_change(struct favorite_edge *e, bool rises)
{
    uint32_t made = hour_of(e->row.at_ms), now = hour_of(e->context->owner_ms);

    e->partial.count += rises ? 1u : UINT64_MAX;
    hours_prune(&e->partial.hours, now);
    if (e->context->version < TOP_APPLY_VERSION)
        e->partial.hours = (struct hours){ 0 };
    else if (!rises)
        hours_remove(&e->partial.hours, made);
    else if (made > now || now - made < HOURS_MAX)
        hours_add(&e->partial.hours, made);
    if (e->context->version >= ERASURE_APPLY_VERSION) /* A row that was spoilt has it elsewhere. */
        hours_trim(&e->partial.hours, e->partial.count);
    return partial_store(e->context, &e->key, &e->partial);
}

/* ---- what waits ---- */
struct first_key {
    struct arena *arena;
    struct slice key;
};

static bool take_first(void *user, struct slice key, struct slice value)
{
    struct first_key *first = user;

    (void)value;
    first->key = arena_copy(first->arena, key);
    return false;
}

/* `limit`: more than what this entry deletes of them. A range is loaded as far as its limit, and a
 * shorter one, all of which is deleted here, would be loaded again and again. */
static err first_of(struct apply_context *context, struct slice prefix, uint32_t limit,
                    struct slice *ret_key)
{
    struct first_key first = { .arena = context->arena };
    const struct state_range range = { .prefix = prefix, .limit = limit };

    err e = state_range_visit(context->state, &range, context->need, take_first, &first);
    *ret_key = first.key;
    return e;
}

err review_since_renew(struct apply_context *context, uint32_t taken_max)
{
    const uint8_t letter = TABLE_REVIEW;
    struct favorite_key edge;
    struct slice key;

    err e = first_of(context, (struct slice){ &letter, 1 }, taken_max + 1, &key);
    if (e != ERR_OK)
        return e;
    context->meta->review_since_ms =
        key.size > 0 && review_key_parse(key, &edge) == ERR_OK ? edge.at_ms : 0;
    return ERR_OK;
}

static void review_begin(struct favorite_edge *e, enum edge_flag flag)
{
    struct meta *meta = e->context->meta;
    struct row_key key;

    e->row.flag = (uint8_t)flag;
    e->row.flagged_at_ms = e->context->owner_ms;
    e->own.flagged++;
    if (meta->review_count++ == 0)
        meta->review_since_ms = e->row.flagged_at_ms;
    review_key(&key, &e->key, e->row.flagged_at_ms);
    review_row_encode(&e->row, fresh(e->context));
    put(e->context, &key);
}

static void review_delete(struct favorite_edge *e)
{
    struct row_key key;

    review_key(&key, &e->key, e->row.flagged_at_ms);
    state_delete(e->context->state, row_key_slice(&key));
    e->row.flag = FLAG_NONE;
    e->row.flagged_at_ms = 0;
    damage_count_down(e->context->damage, &e->context->meta->review_count, 1);
}

/* It waits no more. ERR_NEED. */
static err review_end(struct favorite_edge *e)
{
    bool first = e->row.flagged_at_ms == e->context->meta->review_since_ms;

    review_delete(e);
    e->own.flagged--;
    return first ? review_since_renew(e->context, REVIEW_TARGETS_MAX) : ERR_OK;
}

/* ---- changes ---- */
uint64_t edge_ver_next(const struct favorite_edge *e)
{
    return e->row.ver < FAVORITE_VER_MAX ? e->row.ver + 1 : e->row.ver;
}

/* The one that has been gone for longest is forgotten. ERR_NEED. */
static err forget_oldest(struct favorite_edge *e)
{
    struct apply_context *context = e->context;
    struct favorite_key gone;
    struct row_key key;
    struct slice oldest;

    row_key_favored_prefix(&key, e->key.entity, e->key.collection, FAVORED_GONE);
    err error = first_of(context, row_key_slice(&key), 1, &oldest);
    if (error != ERR_OK)
        return error;
    if (oldest.size == 0 || favorite_key_parse(oldest, &gone) != ERR_OK)
        return apply_damaged(context, e->key.entity, FAVORED_DAMAGE);
    struct favorite_row row;
    error = favorite_find(context->state, &gone, context->need, &row);
    if (error == ERR_NEED)
        return error;
    state_delete(context->state, oldest);
    row_key_favorite(&key, gone.entity, gone.collection, gone.target);
    /* Else a repair left it alone. */
    if (error == ERR_OK && !row.favorited && row.at_ms == gone.at_ms)
        state_delete(context->state, row_key_slice(&key));
    e->own.gone--;
    return ERR_OK;
}

err edge_make(struct favorite_edge *e, uint64_t ver, enum edge_flag flag)
{
    CHECK(!e->row.favorited);
    if (edge_was_there(e)) {
        listed_delete(e);
        e->own.gone--;
    }
    e->row = (struct favorite_row){ .favorited = true, .ver = ver, .at_ms = e->context->owner_ms };
    e->own.edges++;
    if (flag != FLAG_NONE)
        review_begin(e, flag);
    edge_store(e);
    listed_store(e);
    favorer_change(e, true);
    favorites_store(e->context, &e->key, &e->own);
    return favorite_edge_counts(&e->row) ? partial_change(e, true) : ERR_OK;
}

void edge_keep(struct favorite_edge *e, uint64_t ver)
{
    e->row.ver = ver;
    edge_store(e);
    listed_store(e);
}

/* One that counts is taken from the counts, one that waits from what waits. */
static err stop_standing(struct favorite_edge *e)
{
    favorer_change(e, false);
    e->own.edges--;
    if (!favorite_edge_counts(&e->row))
        return review_end(e);
    return partial_change(e, false);
}

err edge_take_away(struct favorite_edge *e, uint64_t ver, enum edge_flag flag)
{
    bool stood = e->row.favorited;
    err error = ERR_OK;

    if (edge_was_there(e))
        listed_delete(e);
    if (edge_was_there(e) && !stood)
        e->own.gone--;
    if (stood)
        error = stop_standing(e);
    if (error == ERR_OK && e->own.gone >= FAVORITE_GONE_MAX)
        error = forget_oldest(e);
    if (error != ERR_OK)
        return error;
    e->row = (struct favorite_row){
        .ver = ver,
        .at_ms = e->context->owner_ms,
        .flag = (uint8_t)flag,
    };
    e->own.gone++;
    edge_store(e);
    listed_store(e);
    favorites_store(e->context, &e->key, &e->own);
    return ERR_OK;
}

err edge_flag(struct favorite_edge *e, enum edge_flag flag)
{
    CHECK(favorite_edge_counts(&e->row));
    err error = partial_change(e, false);

    if (error != ERR_OK)
        return error;
    review_begin(e, flag);
    edge_store(e);
    favorer_change(e, true);
    favorites_store(e->context, &e->key, &e->own);
    return ERR_OK;
}

err edge_accept(struct favorite_edge *e)
{
    CHECK(e->row.favorited && !favorite_edge_counts(&e->row));
    err error = review_end(e);

    if (error != ERR_OK)
        return error;
    edge_store(e);
    favorer_change(e, true);
    favorites_store(e->context, &e->key, &e->own);
    return partial_change(e, true);
}

/* ---- erasures ---- */

/* Before it an edge whose own row could not be read was forgotten with its place at its target. */
#define ERASED_ROW_APPLY_VERSION 10u

struct erased_edge {
    bool with_target; /* It stands there. */
    bool known;       /* Its own row cannot be read, and all of it is known from there. */
};

/* Its `ver` as the player's list has it; 1, the lowest that there is, where that cannot be read.
 * ERR_NEED. */
static err listed_ver(const struct favorite_edge *e, uint64_t *ret_ver)
{
    struct favorite_key unused;
    struct slice value = { 0 };
    struct row_key key;

    *ret_ver = 1;
    listed_key(e, &key);
    enum state_found found = row_find(e->context->state, &key, e->context->need, &value);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (found == STATE_PRESENT &&
        favored_row_decode(row_key_slice(&key), value, &unused, ret_ver) != ERR_OK)
        *ret_ver = 1;
    return ERR_OK;
}

/* What its own row says is so; where that cannot be read the edge is as it stands with its target,
 * else as the list has it. ERR_NEED. */
static err erased_find(struct favorite_edge *e, struct erased_edge *ret_found)
{
    struct favorite_row with_target;
    struct favorite_key unused;
    struct slice value = { 0 };
    struct row_key key;

    row_key_favorer_prefix(&key, e->key.collection, e->key.target);
    row_key_favorer_add(&key, e->key.entity);
    enum state_found found = row_find(e->context->state, &key, e->context->need, &value);
    if (edge_find(e) != ERR_OK || found == STATE_MISSING)
        return ERR_NEED;
    *ret_found = (struct erased_edge){ .with_target = found == STATE_PRESENT };
    if (e->row_read == ERR_OK)
        return ERR_OK;
    e->row = (struct favorite_row){ .favorited = true, .ver = 1, .at_ms = e->key.at_ms };
    if (found != STATE_PRESENT ||
        favorer_row_read(row_key_slice(&key), value, &unused, &with_target) != ERR_OK)
        return ERR_OK;
    e->row.flag = with_target.flag;
    if (e->context->version < ERASED_ROW_APPLY_VERSION)
        return ERR_OK;
    e->row = with_target;
    ret_found->known = true;
    return listed_ver(e, &e->row.ver);
}

static bool is_listed(const struct favorite_edge *e)
{
    return e->row.favorited && e->row.at_ms == e->key.at_ms;
}

/* Whether its target's count can change so. */
static bool can_change(const struct favorite_edge *e, bool rises)
{
    uint64_t max = partial_max(e->context->op->shard_count);

    if (e->partial_read != ERR_OK || e->partial.count > max) /* No home would take it. */
        return false;
    return rises ? e->partial.count < max : e->partial.count > 0;
}

/* As partial_change. A count that cannot be read is left to its repair; a rebuild that is on its
 * way over it follows. */
static err count_erased(struct favorite_edge *e, bool rises)
{
    struct partial_row without = { 0 }, with = { .count = 1 };

    if (can_change(e, rises))
        return partial_change(e, rises);
    damage_note(e->context->damage, (struct slice){ 0 }, PARTIAL_DAMAGE);
    hours_add(&with.hours, hour_of(e->row.at_ms));
    return partial_follow(e->context, &e->key, rises ? &without : &with, rises ? &with : &without);
}

err edge_withdraw(struct favorite_edge *e)
{
    struct erased_edge found;
    err error = erased_find(e, &found);

    if (error != ERR_OK || !is_listed(e) || !found.with_target)
        return error;
    if (found.known)
        edge_store(e); /* With its target it stands no more: an undo and a purge read it here. */
    favorer_change(e, false);
    return favorite_edge_counts(&e->row) ? count_erased(e, false) : ERR_OK;
}

err edge_put_back(struct favorite_edge *e)
{
    struct erased_edge found;
    err error = erased_find(e, &found);

    if (error != ERR_OK || !is_listed(e) || found.with_target)
        return error;
    favorer_change(e, true);
    return favorite_edge_counts(&e->row) ? count_erased(e, true) : ERR_OK;
}

err edge_remove(struct favorite_edge *e)
{
    struct row_key key;

    e->row_read = favorite_find(e->context->state, &e->key, e->context->need, &e->row);
    e->own_read = favorites_find(e->context->state, &e->key, e->context->need, &e->own);
    if (e->row_read == ERR_NEED || e->own_read == ERR_NEED)
        return ERR_NEED;
    if (e->own_read != ERR_OK)
        e->own = (struct favorites_row){ 0 };
    if (e->row_read == ERR_OK && e->row.favorited && !favorite_edge_counts(&e->row)) {
        review_delete(e);
        e->own.flagged -= e->own.flagged > 0;
    }
    row_key_favorite(&key, e->key.entity, e->key.collection, e->key.target);
    state_delete(e->context->state, row_key_slice(&key));
    if (e->key.part == FAVORED_GONE)
        e->own.gone -= e->own.gone > 0;
    else
        e->own.edges -= e->own.edges > 0;
    if (e->own.flagged > e->own.edges)
        e->own.flagged = e->own.edges;
    favorites_store(e->context, &e->key, &e->own);
    return ERR_OK;
}
