#include "node/core/favorite/review.h"

#include <inttypes.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/definition/rate_rule.h"
#include "node/core/favorite/erasure_row.h"
#include "node/core/favorite/favorite.h"
#include "node/core/favorite/review_room.h"
#include "node/core/handler/event.h"
#include "node/core/handler/refusal.h"
#include "runtime/base/check.h"

#define REASON_MAX 64u

/* ---- before the log ---- */
static err targets_check(struct check_context *context, const struct review_call *call)
{
    if (call->all)
        return call->count == 0 ? ERR_OK
                                : refuse_number(context->arena, context->refusal, "target_ids",
                                                "no targets beside `all`", (int64_t)call->count);
    if (call->count == 0 || call->count > REVIEW_TARGETS_MAX)
        return refuse_number(context->arena, context->refusal, "target_ids", "1 to 16",
                             (int64_t)call->count);
    return favorite_targets_check(context->arena, context->refusal, call->count, call->targets);
}

static err after_check(struct check_context *context, const struct review_call *call)
{
    const char *after = call->after != NULL ? call->after : "";
    struct slice target;
    uint64_t at_ms;

    if (after[0] == '\0' || (call->all && favorite_place_parse(after, &at_ms, &target) == ERR_OK))
        return ERR_OK;
    return refuse_invalid(context->arena, context->refusal, "after",
                          "next_after of the call before, with `all`",
                          text_shorten(context->arena, slice_from_text(after)));
}

static err reason_check(struct check_context *context, const char *reason)
{
    struct slice text = slice_from_text(reason);

    if (text.size > 0 && text.size <= REASON_MAX && text_is_clean(text))
        return ERR_OK;
    return refuse_invalid(context->arena, context->refusal, "reason",
                          "1 to 64 bytes of UTF-8 without control characters",
                          text_shorten(context->arena, text));
}

static err collection_named_check(struct check_context *context, const struct review_call *call)
{
    if (call->number == 0)
        return collection_check(context, call->collection);
    if (call->collection[0] == '\0')
        return ERR_OK;
    return refuse_invalid(context->arena, context->refusal, "collection",
                          "no collection beside `collection_number`",
                          text_shorten(context->arena, slice_from_text(call->collection)));
}

err review_check(struct check_context *context, const struct review_call *call,
                 enum review_decision decision)
{
    err e = targets_check(context, call);

    if (e == ERR_OK)
        e = after_check(context, call);
    if (e == ERR_OK)
        e = reason_check(context, call->reason);
    if (e != ERR_OK)
        return e;
    CHECK(decision == REVIEW_FLAG || !call->all);
    if (context->meta->apply_version < FLAG_APPLY_VERSION) {
        (void)refuse(context->arena, context->refusal, CODE(UNAVAILABLE), "",
                     "shard %" PRIu32 " applies version %" PRIu32 "; reviews begin with %u, once "
                     "all its replicas are updated",
                     context->shard, context->meta->apply_version, FLAG_APPLY_VERSION);
        return ERR_INVALID;
    }
    return collection_named_check(context, call);
}

/* ---- at apply ---- */
struct review {
    struct apply_context *context;
    const struct review_call *call;
    enum review_decision decision;
    uint64_t collection;
    struct slice name;     /* Of the collection; empty: it was deleted. */
    struct slice *targets; /* Of the call, or of the player's list. */
    uint32_t count;
    uint64_t last_at_ms; /* Since when the last of the list stands. */
    bool more;
};

static bool may_review(const struct apply_context *context)
{
    struct slice scope = context->op->authority.scope;

    return slice_equal(scope, SLICE_LITERAL("admin")) ||
           slice_equal(scope, SLICE_LITERAL("moderation"));
}

static err collection_find(struct review *r)
{
    struct apply_context *context = r->context;
    struct collection collection;

    if (r->call->number > 0) {
        r->collection = r->call->number;
        return collection_name_find(context->state, context->arena, context->need, r->collection,
                                    &r->name);
    }
    err e = collection_get(context, r->call->collection, &collection);
    if (e == ERR_OK) {
        r->collection = collection.number;
        r->name = collection_name(r->call->collection);
    }
    return e;
}

static bool take_listed(void *user, struct slice key, struct slice value)
{
    struct review *r = user;
    struct favorite_key edge;

    (void)value;
    if (r->count == REVIEW_TARGETS_MAX) {
        r->more = true;
        return false;
    }
    if (favorite_key_parse(key, &edge) != ERR_OK)
        return true; /* A repair drops it. */
    r->targets[r->count++] = arena_copy(r->context->arena, edge.target);
    r->last_at_ms = edge.at_ms;
    return true;
}

/* The player's edges, the newest first. */
static err take_all(struct review *r)
{
    struct apply_context *context = r->context;
    struct row_key prefix, after;
    struct slice target;
    uint64_t at_ms;

    row_key_favored_prefix(&prefix, context->op->entity, r->collection, FAVORED_EDGES);
    after = prefix;
    if (r->call->after[0] != '\0') {
        if (favorite_place_parse(r->call->after, &at_ms, &target) != ERR_OK)
            return refuse_invalid(context->arena, context->refusal, "after", "a place", "");
        row_key_favored_add(&after, FAVORED_EDGES, at_ms, target);
    }
    const struct state_range range = {
        .prefix = row_key_slice(&prefix),
        .after = row_key_slice(&after),
        .limit = REVIEW_TARGETS_MAX + 1, /* One more, to know whether there are more. */
    };
    return state_range_visit(context->state, &range, context->need, take_listed, r);
}

static err targets_find(struct review *r)
{
    size_t room = r->call->all ? REVIEW_TARGETS_MAX : r->call->count;

    r->targets = arena_alloc(r->context->arena, sizeof *r->targets * (room + 1));
    if (r->call->all)
        return take_all(r);
    for (size_t i = 0; i < r->call->count; i++)
        r->targets[r->count++] = slice_from_text(r->call->targets[i]);
    return ERR_OK;
}

static struct favorite_edge edge_of(const struct review *r, uint32_t place)
{
    return (struct favorite_edge){
        .context = r->context,
        .key = {
            .entity = r->context->op->entity,
            .collection = r->collection,
            .target = r->targets[place],
        },
    };
}

/* Every missing row of every edge is noted before ERR_NEED. */
static err rows_find(const struct review *r)
{
    err result = ERR_OK;

    for (uint32_t i = 0; i < r->count; i++) {
        struct favorite_edge edge = edge_of(r, i);
        if (edge_find(&edge) == ERR_NEED)
            result = ERR_NEED;
    }
    return result;
}

static void event_append(const struct review *r, const struct favorite_edge *edge)
{
    static const Holdfast__V1__FavoriteDecision decisions[] = {
        [REVIEW_ACCEPT] = HOLDFAST__V1__FAVORITE_DECISION__FAVORITE_DECISION_ACCEPTED,
        [REVIEW_REJECT] = HOLDFAST__V1__FAVORITE_DECISION__FAVORITE_DECISION_REJECTED,
        [REVIEW_FLAG] = HOLDFAST__V1__FAVORITE_DECISION__FAVORITE_DECISION_FLAGGED,
    };
    Holdfast__V1__FavoriteEvent event = HOLDFAST__V1__FAVORITE_EVENT__INIT;
    struct arena *arena = r->context->arena;

    event.collection = arena_text(arena, r->name);
    event.target_id = arena_text(arena, edge->key.target);
    event.favorited = edge->row.favorited;
    event.ver = edge->row.ver;
    if (edge->row.favorited)
        event.flagged_for = (Holdfast__V1__FlagReason)edge->row.flag;
    event.decision = decisions[r->decision];
    event.decided_by = arena_text(arena, r->context->authority_text);
    event.reason = arena_text(arena, slice_from_text(r->call->reason));
    event_add(r->context, HOLDFAST__V1__EVENT_KIND__EVENT_KIND_FAVORITE, edge->key.entity,
              &event.base);
}

static err refuse_edge(const struct review *r, uint32_t place, const char *why)
{
    struct apply_context *context = r->context;
    err e = refuse(context->arena, context->refusal, CODE(NOT_FOUND),
                   arena_printf(context->arena, "target_ids[%" PRIu32 "]", place), "%s", why);

    context->refusal->value =
        value_shorten_applied(context, arena_copy(context->arena, r->targets[place]));
    return e;
}

/* What is decided of one edge. *ret_changed false: it is so already. */
static err decide(const struct review *r, struct favorite_edge *edge, uint32_t place,
                  bool *ret_changed)
{
    bool counts = favorite_edge_counts(&edge->row);
    err e = ERR_OK;

    *ret_changed = r->decision != REVIEW_FLAG || counts;
    if (!edge->row.favorited && r->call->all) {
        *ret_changed = false; /* A list that says otherwise is for a repair. */
        return ERR_OK;
    }
    if (!edge->row.favorited)
        return refuse_edge(r, place, "the player has no edge to that target");
    if (r->decision != REVIEW_FLAG && counts)
        return refuse_edge(r, place, "the edge is not flagged: it counts");
    if (r->decision == REVIEW_ACCEPT)
        return edge_accept(edge);
    if (r->decision == REVIEW_REJECT)
        return edge_take_away(edge, edge_ver_next(edge), FLAG_REJECTED);
    if (counts)
        e = review_room(r->context, REVIEW_BY_HAND);
    if (counts && e == ERR_OK)
        e = edge_flag(edge, FLAG_MODERATION);
    return e;
}

static err decide_all(const struct review *r, uint32_t *ret_edges)
{
    *ret_edges = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        struct favorite_edge edge = edge_of(r, i);
        bool changed = false;

        err e = edge_find(&edge);
        if (e == ERR_OK)
            e = edge_check(&edge);
        if (e == ERR_OK)
            e = decide(r, &edge, i, &changed);
        if (e != ERR_OK)
            return e;
        if (changed) {
            event_append(r, &edge);
            (*ret_edges)++;
        }
    }
    return ERR_OK;
}

err review_decide(struct apply_context *context, const struct review_call *call,
                  enum review_decision decision, struct review_result *ret_result)
{
    struct review r = { .context = context, .call = call, .decision = decision };

    if (!may_review(context))
        return refuse(context->arena, context->refusal, CODE(PERMISSION_DENIED), "authority",
                      "a review needs the scope admin or moderation");
    err e = collection_find(&r);
    if (e == ERR_OK)
        e = erasure_admit(context);
    if (e == ERR_OK)
        e = targets_find(&r);
    if (e == ERR_OK)
        e = rows_find(&r);
    if (e == ERR_OK)
        e = decide_all(&r, &ret_result->edges);
    if (e != ERR_OK)
        return e;
    ret_result->next =
        r.more ? favorite_place_print(context->arena, r.last_at_ms,
                                      arena_text(context->arena, r.targets[r.count - 1]))
               : "";
    return ERR_OK;
}
