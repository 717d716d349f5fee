#include <stdlib.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/handler/refusal.h"
#include "node/core/top/top.h"
#include "runtime/base/check.h"

#define PLACES_PAGE 256u
#define PLACES_MAX  65536u /* Looked at for one answer. */

struct listing {
    struct read_context *context;
    uint64_t collection;
    char window;
    uint32_t hour;
    uint32_t limit, count;
    struct top_entry *best;
    /* A page of places. */
    struct top_key places[PLACES_PAGE];
    uint32_t place_count;
    struct slice last;
};

static bool take_place(void *user, struct slice key, struct slice value)
{
    struct listing *l = user;
    struct top_key place;

    l->last = arena_copy(l->context->arena, key);
    if (rank_row_decode(l->last, value, &place) != ERR_OK) {
        damage_note(l->context->damage, (struct slice){ 0 }, RANK_DAMAGE);
        return true;
    }
    l->places[l->place_count++] = place;
    return true;
}

static err read_places(struct listing *l)
{
    struct row_key prefix;

    row_key_rank_prefix(&prefix, l->collection, l->window);
    const struct state_range range = { .prefix = row_key_slice(&prefix),
                                       .after = l->last,
                                       .limit = PLACES_PAGE };
    l->place_count = 0;
    return state_range_visit(l->context->state, &range, l->context->need, take_place, l);
}

/* What a place counts for now; 0: nothing, or a repair left it alone. */
static err count_now(struct listing *l, const struct top_key *place, uint64_t *ret_count)
{
    struct tally_row tally;

    *ret_count = 0;
    err e = tally_find(l->context->state, place, l->context->need, &tally);
    if (e == ERR_CORRUPT) {
        damage_note(l->context->damage, (struct slice){ 0 }, TALLY_DAMAGE);
        return ERR_OK;
    }
    if (e != ERR_OK)
        return e;
    uint64_t bound = l->window == TOP_ALL   ? tally.count
                     : l->window == TOP_DAY ? tally.day
                                            : tally.week;
    if (bound != place->count)
        return ERR_OK;
    if (l->window == TOP_ALL)
        *ret_count = bound;
    else
        *ret_count = hours_sum(&tally.hours, l->hour, l->window == TOP_DAY ? HOURS_DAY : HOURS_MAX);
    return ERR_OK;
}

static bool comes_before(const struct top_entry *a, const struct top_entry *b)
{
    return a->count != b->count ? a->count > b->count : slice_compare(a->target, b->target) < 0;
}

static void offer(struct listing *l, const struct top_entry *entry)
{
    uint32_t at = l->count;

    if (l->count == l->limit) {
        if (!comes_before(entry, &l->best[l->count - 1]))
            return;
        at = l->count - 1;
    } else {
        l->count++;
    }
    for (; at > 0 && comes_before(entry, &l->best[at - 1]); at--)
        l->best[at] = l->best[at - 1];
    l->best[at] = *entry;
}

/* No place from this one on could bring in another: what it counts now is at most what its place
 * says, and of equals the lesser id is first. Without that, all that stand at the count of the last
 * one would be looked at, and there may be a million at 1. */
static bool is_settled(const struct listing *l, const struct top_key *place)
{
    const struct top_entry at_best = { .target = place->target, .count = place->count };

    return l->count == l->limit && !comes_before(&at_best, &l->best[l->count - 1]);
}

/* ERR_NEED: every row of the page that is missing is noted. */
static err look_at_page(struct listing *l, bool *ret_settled)
{
    err result = ERR_OK;

    *ret_settled = false;
    for (uint32_t i = 0; i < l->place_count; i++) {
        struct top_entry entry = { .target = l->places[i].target };
        if (result == ERR_OK && is_settled(l, &l->places[i])) {
            *ret_settled = true;
            return ERR_OK;
        }
        err e = count_now(l, &l->places[i], &entry.count);
        if (e != ERR_OK)
            result = e;
        else if (entry.count > 0 && result == ERR_OK)
            offer(l, &entry);
    }
    return result;
}

static err refuse_many(struct read_context *context)
{
    err e = refuse(context->arena, context->refusal, CODE(THROTTLED), "",
                   "over %u targets would have to be looked at; their places in the list are being "
                   "brought up to date",
                   PLACES_MAX);

    context->refusal->retry_after_ms = 1000;
    return e;
}

err top_list(struct read_context *context, const struct top_ask *ask, struct top_entry *ret_entries,
             uint32_t *ret_count)
{
    uint64_t now_ms = context->now_unix_ms > context->meta->owner_ms ? context->now_unix_ms
                                                                     : context->meta->owner_ms;
    struct listing *l = arena_zalloc(context->arena, sizeof *l);
    uint32_t looked_at = 0;
    bool settled = false;
    err e = ERR_OK;

    CHECK(ask->limit > 0 && ask->limit <= TOP_LIMIT_MAX);
    *l = (struct listing){ .context = context,
                           .collection = ask->collection,
                           .window = ask->window,
                           .hour = hour_of(now_ms),
                           .limit = ask->limit,
                           .best = ret_entries };
    while (e == ERR_OK && !settled) {
        struct slice before = l->last;
        e = read_places(l);
        if (e == ERR_OK)
            e = look_at_page(l, &settled);
        if (l->last.data == before.data)
            break; /* The list has ended. */
        looked_at += PLACES_PAGE;
        if (e == ERR_OK && !settled && looked_at >= PLACES_MAX)
            return refuse_many(context);
    }
    *ret_count = l->count;
    return e;
}
