#include "node/core/favorite/favorite.h"

#include <inttypes.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/definition/player_rate.h"
#include "node/core/favorite/erasure_row.h"
#include "node/core/handler/event.h"
#include "node/core/handler/refusal.h"
#include "runtime/base/check.h"

#define TARGETS_MAX 200u

/* ---- before the log ---- */
err favorite_target_check(struct arena *arena, struct refusal *refusal, const char *field,
                          const char *target)
{
    struct slice text = slice_from_text(target);

    if (text.size > 0 && text.size <= TARGET_ID_MAX && text_is_clean(text))
        return ERR_OK;
    return refuse_invalid(arena, refusal, field,
                          "1 to 128 bytes of UTF-8 without control characters",
                          text_shorten(arena, text));
}

err favorite_targets_check(struct arena *arena, struct refusal *refusal, size_t count,
                           char *const *targets)
{
    if (count == 0 || count > TARGETS_MAX)
        return refuse_number(arena, refusal, "target_ids", "1 to 200", (int64_t)count);
    for (size_t i = 0; i < count; i++) {
        const char *field = arena_printf(arena, "target_ids[%zu]", i);
        err e = favorite_target_check(arena, refusal, field, targets[i]);
        if (e != ERR_OK)
            return e;
        for (size_t j = 0; j < i; j++) {
            if (strcmp(targets[j], targets[i]) == 0)
                return refuse_invalid(arena, refusal, field, "each target once",
                                      text_shorten(arena, slice_from_text(targets[i])));
        }
    }
    return ERR_OK;
}

static err refuse_ver(struct check_context *context, const char *field, const char *limit,
                      uint64_t ver)
{
    return refuse_invalid(context->arena, context->refusal, field, limit,
                          arena_printf(context->arena, "%" PRIu64, ver));
}

/* Replicas of an earlier program could not apply it. */
static err refuse_early(struct check_context *context)
{
    (void)refuse(context->arena, context->refusal, CODE(UNAVAILABLE), "",
                 "shard %" PRIu32 " applies version %" PRIu32 "; favorites begin with %u, once all "
                 "its replicas are updated",
                 context->shard, context->meta->apply_version, FAVORITE_APPLY_VERSION);
    return ERR_INVALID;
}

/* Players may call this themselves: an id that is kept for ever is not for them, and one of a
 * receipt or of a claim would stand in the way of what it is for. */
static err op_id_check(struct check_context *context, const char *text)
{
    struct slice given = slice_from_text(text);
    struct op_id id;
    const char *why;

    if (op_id_parse(given, &id, &why) == ERR_OK && (!id.typed || id.is_key))
        return ERR_OK;
    return refuse_invalid(context->arena, context->refusal, "op_id", "a UUIDv7, or key:<anything>",
                          text_shorten(context->arena, given));
}

err favorite_check(struct check_context *context, const struct favorite_call *call)
{
    err e = op_id_check(context, call->op_id);

    if (e == ERR_OK)
        e = favorite_target_check(context->arena, context->refusal, "target_id", call->target);

    if (e != ERR_OK)
        return e;
    if (call->ver != NULL && (*call->ver == 0 || *call->ver > FAVORITE_VER_MAX))
        return refuse_ver(context, "ver", "1 to 9007199254740991, or absent", *call->ver);
    if (call->if_ver != NULL && *call->if_ver > FAVORITE_VER_MAX)
        return refuse_ver(context, "if_ver", "0 to 9007199254740991, or absent", *call->if_ver);
    if (context->meta->apply_version < FAVORITE_APPLY_VERSION)
        return refuse_early(context);
    return collection_check(context, call->collection);
}

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
    buf_clear(context->scratch);
    favorites_row_encode(row, context->scratch);
    put(context, &key);
}

/* ---- one call, at apply ---- */
struct change {
    struct apply_context *context;
    const struct favorite_call *call;
    struct collection collection;
    struct favorite_key edge;
    struct favorite_row row;  /* As it stands; `ver` 0: there is none. */
    struct favorites_row own; /* The player's, in this collection. */
    struct partial_row partial;
    struct player_rate rate; /* How often the player changed edges lately. */
};

static bool was_there(const struct change *c)
{
    return c->row.ver > 0;
}

static err load_rate(struct change *c)
{
    const struct rate_subject subject = {
        .number = c->collection.number,
        .name = collection_name(c->call->collection),
        .default_limit = RATE_EDGES_LIMIT,
        .default_period_ms = RATE_EDGES_PERIOD_MS,
    };

    return player_rate_load(c->context, &subject, &c->rate);
}

/* Every missing row is noted before ERR_NEED. A row that cannot be read refuses. */
static err load(struct change *c)
{
    struct apply_context *context = c->context;
    struct slice entity = c->edge.entity;

    err edge = favorite_find(context->state, &c->edge, context->need, &c->row);
    err own = favorites_find(context->state, &c->edge, context->need, &c->own);
    err partial = partial_find(context->state, &c->edge, context->need, &c->partial);
    err rate = load_rate(c);
    if (edge == ERR_NEED || own == ERR_NEED || partial == ERR_NEED || rate == ERR_NEED)
        return ERR_NEED;
    if (rate != ERR_OK)
        return apply_damaged(context, entity, RATE_DAMAGE);
    if (edge != ERR_OK)
        return apply_damaged(context, entity, FAVORITE_DAMAGE);
    if (own != ERR_OK)
        return apply_damaged(context, entity, FAVORITES_DAMAGE);
    if (partial != ERR_OK)
        return apply_damaged(context, (struct slice){ 0 }, PARTIAL_DAMAGE);
    if (c->row.favorited && c->own.edges == 0)
        return apply_damaged(context, entity, FAVORITES_DAMAGE);
    if (was_there(c) && !c->row.favorited && c->own.gone == 0)
        return apply_damaged(context, entity, FAVORITES_DAMAGE);
    if (c->row.favorited && c->partial.count == 0)
        return apply_damaged(context, (struct slice){ 0 }, PARTIAL_DAMAGE);
    return ERR_OK;
}

static void edge_store(struct change *c)
{
    struct row_key key;

    row_key_favorite(&key, c->edge.entity, c->edge.collection, c->edge.target);
    buf_clear(c->context->scratch);
    favorite_row_encode(&c->row, c->context->scratch);
    put(c->context, &key);
}

/* Where the edge stands in its player's lists. */
static void listed_key(const struct change *c, struct row_key *key)
{
    char part = c->row.favorited ? FAVORED_EDGES : FAVORED_GONE;

    row_key_favored_prefix(key, c->edge.entity, c->edge.collection, part);
    row_key_favored_add(key, part, c->row.at_ms, c->edge.target);
}

static void listed_store(struct change *c)
{
    struct row_key key;

    listed_key(c, &key);
    buf_clear(c->context->scratch);
    favored_row_encode(c->row.ver, c->context->scratch);
    put(c->context, &key);
}

static void listed_delete(struct change *c)
{
    struct row_key key;

    listed_key(c, &key);
    state_delete(c->context->state, row_key_slice(&key));
}

static void favorer_change(struct change *c, bool stands)
{
    struct row_key key;

    row_key_favorer_prefix(&key, c->edge.collection, c->edge.target);
    row_key_favorer_add(&key, c->edge.entity);
    if (!stands) {
        state_delete(c->context->state, row_key_slice(&key));
        return;
    }
    buf_clear(c->context->scratch);
    favorer_row_encode(c->row.at_ms, c->context->scratch);
    put(c->context, &key);
}

/* An edge that goes is taken from the hour in which it was made: `at_ms` of its row. */
static void partial_change(struct change *c, bool rises)
{
    uint32_t made = hour_of(c->row.at_ms);

    c->partial.count += rises ? 1u : UINT64_MAX;
    hours_prune(&c->partial.hours, hour_of(c->context->owner_ms));
    if (c->context->version < TOP_APPLY_VERSION)
        c->partial.hours = (struct hours){ 0 };
    else if (rises)
        hours_add(&c->partial.hours, made);
    else
        hours_remove(&c->partial.hours, made);
    partial_store(c->context, &c->edge, &c->partial);
}

struct oldest {
    struct arena *arena;
    struct slice key;
};

static bool take_oldest(void *user, struct slice key, struct slice value)
{
    struct oldest *oldest = user;

    (void)value;
    oldest->key = arena_copy(oldest->arena, key);
    return false;
}

/* The one that has been gone for longest is forgotten. ERR_NEED. */
static err forget_oldest(struct change *c)
{
    struct apply_context *context = c->context;
    struct oldest oldest = { .arena = context->arena };
    struct favorite_key gone;
    struct row_key key;

    row_key_favored_prefix(&key, c->edge.entity, c->edge.collection, FAVORED_GONE);
    const struct state_range first = { .prefix = row_key_slice(&key), .limit = 1 };
    err e = state_range_visit(context->state, &first, context->need, take_oldest, &oldest);
    if (e != ERR_OK)
        return e;
    if (oldest.key.size == 0 || favorite_key_parse(oldest.key, &gone) != ERR_OK)
        return apply_damaged(context, c->edge.entity, FAVORED_DAMAGE);
    struct favorite_row row;
    e = favorite_find(context->state, &gone, context->need, &row);
    if (e == ERR_NEED)
        return e;
    state_delete(context->state, oldest.key);
    row_key_favorite(&key, gone.entity, gone.collection, gone.target);
    if (e == ERR_OK && !row.favorited && row.at_ms == gone.at_ms) /* Else a repair left it alone. */
        state_delete(context->state, row_key_slice(&key));
    c->own.gone--;
    return ERR_OK;
}

static err refuse_full(struct change *c)
{
    struct apply_context *context = c->context;
    uint32_t max = c->collection.edges_max;
    err e = refuse(context->arena, context->refusal, CODE(CAPACITY_FULL), "target_id",
                   "the player has %" PRIu32 " edges in the collection already", c->own.edges);

    context->refusal->limit = arena_printf(context->arena, "%" PRIu32, max);
    context->refusal->value = arena_printf(context->arena, "%" PRIu32, c->own.edges);
    refusal_tell_capacity(context, "edges", max);
    return e;
}

/* The edge comes to be. */
static err make(struct change *c, uint64_t ver)
{
    if (c->own.edges >= c->collection.edges_max)
        return refuse_full(c);
    if (was_there(c)) {
        listed_delete(c);
        c->own.gone--;
    }
    c->row = (struct favorite_row){ true, ver, c->context->owner_ms };
    c->own.edges++;
    edge_store(c);
    listed_store(c);
    favorer_change(c, true);
    partial_change(c, true);
    favorites_store(c->context, &c->edge, &c->own);
    return ERR_OK;
}

/* The edge goes, or is known to be gone from here on. */
static err take_away(struct change *c, uint64_t ver)
{
    bool stood = c->row.favorited;

    if (was_there(c))
        listed_delete(c);
    if (was_there(c) && !stood)
        c->own.gone--;
    if (stood) {
        favorer_change(c, false);
        partial_change(c, false);
        c->own.edges--;
    }
    if (c->own.gone >= FAVORITE_GONE_MAX) {
        err e = forget_oldest(c);
        if (e != ERR_OK)
            return e;
    }
    c->row = (struct favorite_row){ false, ver, c->context->owner_ms };
    c->own.gone++;
    edge_store(c);
    listed_store(c);
    favorites_store(c->context, &c->edge, &c->own);
    return ERR_OK;
}

/* What it is already: only its `ver` rises. */
static err keep(struct change *c, uint64_t ver)
{
    c->row.ver = ver;
    edge_store(c);
    listed_store(c);
    return ERR_OK;
}

/* 0: a call with this `ver` or a higher one was here before. */
static uint64_t ver_after(const struct change *c)
{
    uint64_t stands = c->row.ver;

    if (c->call->ver != NULL && *c->call->ver > stands)
        return *c->call->ver;
    if (c->call->ver != NULL && !c->collection.last_write)
        return 0;
    return stands < FAVORITE_VER_MAX ? stands + 1 : stands;
}

/* Whatever comes of it counts for the player's rate, unless it is refused. */
static err change(struct change *c, uint64_t ver)
{
    err e = player_rate_take(c->context, &c->rate);

    if (e != ERR_OK)
        return e;
    if (!c->call->favorite)
        return take_away(c, ver);
    return c->row.favorited ? keep(c, ver) : make(c, ver);
}

Holdfast__V1__FavoriteStatus *favorite_status(struct arena *arena, struct slice target,
                                              const struct favorite_row *row)
{
    Holdfast__V1__FavoriteStatus *status =
        (void *)arena_message(arena, &holdfast__v1__favorite_status__descriptor);

    status->target_id = arena_text(arena, target);
    if (row == NULL)
        return status;
    status->favorited = row->favorited;
    status->ver = row->ver;
    status->created_at_ms = row->favorited ? (int64_t)row->at_ms : 0;
    return status;
}

static void event_append(struct change *c)
{
    Holdfast__V1__FavoriteEvent event = HOLDFAST__V1__FAVORITE_EVENT__INIT;
    struct arena *arena = c->context->arena;

    event.collection = arena_text(arena, collection_name(c->call->collection));
    event.target_id = arena_text(arena, c->edge.target);
    event.favorited = c->row.favorited;
    event.ver = c->row.ver;
    event_add(c->context, HOLDFAST__V1__EVENT_KIND__EVENT_KIND_FAVORITE, c->edge.entity,
              &event.base);
}

err favorite_change(struct apply_context *context, const struct favorite_call *call,
                    struct favorite_result *ret_result)
{
    struct change c = { .context = context, .call = call };

    err e = collection_get(context, call->collection, &c.collection);
    if (e == ERR_OK)
        e = erasure_admit(context);
    if (e != ERR_OK)
        return e;
    c.edge = (struct favorite_key){
        .entity = context->op->entity,
        .collection = c.collection.number,
        .target = slice_from_text(call->target),
    };
    e = load(&c);
    if (e != ERR_OK)
        return e;
    if (call->if_ver != NULL && *call->if_ver != c.row.ver) {
        const struct version_pair versions = { c.row.ver, *call->if_ver };
        return refuse_version(context, "if_ver", "the edge", &versions);
    }
    bool stood = c.row.favorited;
    uint64_t ver = ver_after(&c);
    if (ver > 0)
        e = change(&c, ver);
    if (e != ERR_OK)
        return e;
    if (c.row.favorited != stood)
        event_append(&c);
    *ret_result = (struct favorite_result){
        .status = favorite_status(context->arena, c.edge.target, &c.row),
        .applied = ver > 0,
        .edges = c.own.edges,
    };
    return ERR_OK;
}
