#include "node/core/favorite/favorite.h"

#include <inttypes.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/definition/player_rate.h"
#include "node/core/favorite/erasure_row.h"
#include "node/core/favorite/review_room.h"
#include "node/core/handler/event.h"
#include "node/core/handler/refusal.h"
#include "runtime/base/once.h"
#include "runtime/cluster/incarnation.h"

#define TARGETS_MAX 200u

/* ---- before the log ---- */
err favorite_target_check(struct arena *arena, struct refusal *refusal, const char *field,
                          const char *target)
{
    if (target_is_sound(slice_from_text(target)))
        return ERR_OK;
    return refuse_invalid(arena, refusal, field,
                          "1 to 128 bytes of UTF-8 without control characters",
                          text_shorten(arena, slice_from_text(target)));
}

static const char *field_at(struct arena *arena, size_t place)
{
    return arena_printf(arena, "target_ids[%zu]", place);
}

err favorite_targets_check(struct arena *arena, struct refusal *refusal, size_t count,
                           char *const *targets)
{
    struct once seen = { 0 };

    if (count == 0 || count > TARGETS_MAX)
        return refuse_number(arena, refusal, "target_ids", "1 to 200", (int64_t)count);
    for (size_t i = 0; i < count; i++) {
        if (!target_is_sound(slice_from_text(targets[i])))
            return favorite_target_check(arena, refusal, field_at(arena, i), targets[i]);
        if (!once_add(&seen, (const char *const *)targets, i))
            return refuse_invalid(arena, refusal, field_at(arena, i), "each target once",
                                  text_shorten(arena, slice_from_text(targets[i])));
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

/* ---- ahead of the log ---- */
static void add_key(struct need *keys, const struct row_key *key)
{
    need_add_key(keys, row_key_slice(key));
}

void favorite_foresee(struct state *state, struct arena *arena, const struct favorite_call *call,
                      struct slice entity, struct need *keys)
{
    struct slice target = slice_from_text(call->target);
    struct collection collection;
    struct row_key key;

    if (!target_is_sound(target) || !collection_known(state, arena, call->collection, &collection))
        return;
    row_key_favorite(&key, entity, collection.number, target);
    add_key(keys, &key);
    row_key_favorites(&key, entity, collection.number);
    add_key(keys, &key);
    row_key_rate(&key, entity, collection.number);
    add_key(keys, &key);
    row_key_partial(&key, collection.number, target);
    add_key(keys, &key);
}

/* ---- one call, at apply ---- */
struct change {
    const struct favorite_call *call;
    struct collection collection;
    struct favorite_edge edge;
    struct player_rate rate; /* How often the player changed edges lately. */
};

static err load_rate(struct change *c)
{
    const struct rate_subject subject = {
        .number = c->collection.number,
        .name = collection_name(c->call->collection),
        .default_limit = RATE_EDGES_LIMIT,
        .default_period_ms = RATE_EDGES_PERIOD_MS,
    };

    return player_rate_load(c->edge.context, &subject, &c->rate);
}

/* Every missing row is noted before ERR_NEED. A row that cannot be read refuses. */
static err load(struct change *c)
{
    struct apply_context *context = c->edge.context;

    err rate = load_rate(c);
    err edge = edge_find(&c->edge);
    if (edge == ERR_NEED || rate == ERR_NEED)
        return ERR_NEED;
    if (rate != ERR_OK)
        return apply_damaged(context, c->edge.key.entity, RATE_DAMAGE);
    return edge_check(&c->edge);
}

static err refuse_full(struct change *c)
{
    struct apply_context *context = c->edge.context;
    uint32_t max = c->collection.edges_max, edges = c->edge.own.edges;
    err e = refuse(context->arena, context->refusal, CODE(CAPACITY_FULL), "target_id",
                   "the player has %" PRIu32 " edges in the collection already", edges);

    context->refusal->limit = arena_printf(context->arena, "%" PRIu32, max);
    context->refusal->value = arena_printf(context->arena, "%" PRIu32, edges);
    refusal_tell_capacity(context, "edges", max);
    return e;
}

/* What a moderator decided before holds over what rules say. */
static enum edge_flag flag_of(const struct change *c)
{
    if (c->edge.row.flag != FLAG_NONE)
        return (enum edge_flag)c->edge.row.flag;
    switch (player_rate_flag(c->edge.context, &c->rate)) {
    case RATE_FLAGS_YOUNG:
        return FLAG_ACCOUNT_AGE;
    case RATE_FLAGS_FAST:
        return FLAG_VELOCITY;
    case RATE_FLAGS_NOTHING:
    default:
        return FLAG_NONE;
    }
}

/* The edge comes to be. `flag` was found before its windows took it in. */
static err make(struct change *c, uint64_t ver, enum edge_flag flag)
{
    if (c->edge.own.edges >= c->collection.edges_max)
        return refuse_full(c);
    if (flag != FLAG_NONE) {
        err e = review_room(c->edge.context, c->edge.own.flagged);
        if (e != ERR_OK)
            return e;
    }
    return edge_make(&c->edge, ver, flag);
}

/* What a moderator decided of the edge is remembered; what a rule did is judged again. */
static enum edge_flag flag_after(const struct change *c)
{
    uint8_t flag = c->edge.row.flag;

    return flag == FLAG_MODERATION || flag == FLAG_REJECTED ? (enum edge_flag)flag : FLAG_NONE;
}

/* 0: a call with this `ver` or a higher one was here before. */
static uint64_t ver_after(const struct change *c)
{
    uint64_t stands = c->edge.row.ver;

    if (c->call->ver != NULL && *c->call->ver > stands)
        return *c->call->ver;
    if (c->call->ver != NULL && !c->collection.last_write)
        return 0;
    return edge_ver_next(&c->edge);
}

/* Whatever comes of it counts for the player's rate, unless it is refused. */
static err change(struct change *c, uint64_t ver)
{
    bool makes = c->call->favorite && !c->edge.row.favorited;
    enum edge_flag flag = makes ? flag_of(c) : FLAG_NONE;
    err e = player_rate_take(c->edge.context, &c->rate, makes);

    if (e != ERR_OK)
        return e;
    if (!c->call->favorite)
        return edge_take_away(&c->edge, ver, flag_after(c));
    if (makes)
        return make(c, ver, flag);
    edge_keep(&c->edge, ver);
    return ERR_OK;
}

char *favorite_place_print(struct arena *arena, uint64_t at_ms, const char *target)
{
    return arena_printf(arena, "%" PRIu64 ":%s", at_ms, target);
}

err favorite_place_parse(const char *place, uint64_t *ret_at_ms, struct slice *ret_target)
{
    const char *colon = strchr(place, ':');

    if (colon == NULL)
        return ERR_INVALID;
    struct slice number = { (const uint8_t *)place, (size_t)(colon - place) };
    struct slice target = slice_from_text(colon + 1);
    if (decimal_parse(number, ret_at_ms) != ERR_OK || target.size == 0 ||
        target.size > TARGET_ID_MAX)
        return ERR_INVALID;
    *ret_target = target;
    return ERR_OK;
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
    struct apply_context *context = c->edge.context;
    const struct favorite_row *row = &c->edge.row;

    event.collection = arena_text(context->arena, collection_name(c->call->collection));
    event.target_id = arena_text(context->arena, c->edge.key.target);
    event.favorited = row->favorited;
    event.ver = row->ver;
    if (row->favorited)
        event.flagged_for = (Holdfast__V1__FlagReason)row->flag;
    event_add(context, HOLDFAST__V1__EVENT_KIND__EVENT_KIND_FAVORITE, c->edge.key.entity,
              &event.base);
}

err favorite_change(struct apply_context *context, const struct favorite_call *call,
                    struct favorite_result *ret_result)
{
    struct change c = { .call = call, .edge.context = context };
    struct favorite_edge *edge = &c.edge;

    err e = collection_get(context, call->collection, &c.collection);
    if (e == ERR_OK)
        e = erasure_admit(context);
    if (e != ERR_OK)
        return e;
    edge->key = (struct favorite_key){
        .entity = context->op->entity,
        .collection = c.collection.number,
        .target = slice_from_text(call->target),
    };
    e = load(&c);
    if (e != ERR_OK)
        return e;
    if (call->if_ver != NULL && *call->if_ver != edge->row.ver) {
        const struct version_pair versions = { edge->row.ver, *call->if_ver };
        return refuse_version(context, "if_ver", "the edge", &versions);
    }
    bool stood = edge->row.favorited;
    uint64_t ver = ver_after(&c);
    if (ver > 0)
        e = change(&c, ver);
    if (e != ERR_OK)
        return e;
    if (edge->row.favorited != stood)
        event_append(&c);
    *ret_result = (struct favorite_result){
        .status = favorite_status(context->arena, edge->key.target, &edge->row),
        .applied = ver > 0,
        .edges = edge->own.edges,
    };
    return ERR_OK;
}
