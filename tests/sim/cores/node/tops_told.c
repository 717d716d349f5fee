/* What shards answer to pulls, to what homes log, and to readers of lists; and which rows stand
 * once all is pulled. */
#include <inttypes.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/favorite/partial.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/node/tops.h"

#define LIMIT_MAX 1000u

typedef Holdfast__Internal__V1__GetPulledResponse pulled_response;
typedef Holdfast__Internal__V1__PullPartialsRequest pull_request;
typedef Holdfast__Internal__V1__PullPartialsResponse pull_response;
typedef Holdfast__Internal__V1__TakePartialsRequest take_request;
typedef Holdfast__Internal__V1__TakePartialsResponse take_response;
typedef Holdfast__Internal__V1__ForgetPartialsRequest forget_request;
typedef Holdfast__Internal__V1__ForgetPartialsResponse forget_response;

/* One of a target's counts in one shard. */
struct spot_place {
    uint32_t target, collection;
};

static struct slice bytes_of(const ProtobufCBinaryData *data)
{
    return (struct slice){ data->data, data->len };
}

static bool is_same(struct source_dot a, struct source_dot b)
{
    return a.epoch == b.epoch && a.counter == b.counter;
}

/* The first change for that home above `after`; false: there is none. */
static bool next_changed(const struct tops *t, uint32_t source, uint32_t home,
                         struct source_dot after, struct spot_place *ret_place)
{
    const struct tops_spot *best = NULL;

    for (uint32_t i = 0; i < t->target_count; i++) {
        for (uint32_t c = 0; c < TOPS_COLLECTIONS; c++) {
            const struct tops_spot *spot = &t->targets[i].spots[c][source];
            if (t->targets[i].home[c] != home || !spot->kept ||
                !source_dot_is_above(spot->changed, after) ||
                (best != NULL && source_dot_is_above(spot->changed, best->changed)))
                continue;
            best = spot;
            *ret_place = (struct spot_place){ i, c };
        }
    }
    return best != NULL;
}

/* Of the hours that a week still holds, how many edges were made in each. */
static uint64_t hours_since(const struct hour_count *list, uint32_t count, uint32_t first,
                            uint32_t hour)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum += list[i].hour >= first && list[i].hour == hour ? list[i].count : 0;
    return sum;
}

static void check_item(struct tops *t, uint32_t source, const struct pull_item *item,
                       const struct spot_place *place)
{
    const struct tops_target *target = &t->targets[place->target];
    const struct tops_spot *spot = &target->spots[place->collection][source];
    uint32_t first = hour_of(t->shards[source].now_ms) - HOURS_MAX + 1;

    PROMISE(t->sim,
            slice_equal(item->target, slice_from_text(target->name)) &&
                item->collection == tops_number(place->collection) &&
                is_same(item->dot, spot->changed),
            "a change of \"%s\" is left out, or told out of its turn", target->name);
    PROMISE(t->sim, item->count == tops_count(spot), "\"%s\" is told to have %" PRIu64 " edges",
            target->name, item->count);
    for (uint32_t p = 0; p < TOPS_PLAYERS; p++) {
        uint32_t hour = hour_of(spot->made_ms[p]), wanted = 0;
        if (spot->made_ms[p] == 0 || hour < first)
            continue;
        for (uint32_t k = 0; k < TOPS_PLAYERS; k++)
            wanted += spot->made_ms[k] > 0 && hour_of(spot->made_ms[k]) == hour;
        PROMISE(t->sim, hours_since(item->hours.list, item->hours.count, first, hour) == wanted,
                "of an hour of \"%s\" not %u edges are told", target->name, wanted);
    }
}

/* A target without edges that the home knows to be so. */
static bool has_emptied(const struct tops *t, uint32_t source, const struct pull_home *home)
{
    for (uint32_t i = 0; i < t->target_count; i++) {
        for (uint32_t c = 0; c < TOPS_COLLECTIONS; c++) {
            const struct tops_spot *spot = &t->targets[i].spots[c][source];
            if (t->targets[i].home[c] == home->home && spot->kept && tops_count(spot) == 0 &&
                !source_dot_is_above(spot->changed, home->after))
                return true;
        }
    }
    return false;
}

static void check_part(struct tops *t, uint32_t source, const struct pull_home *home,
                       const struct pull_part *part)
{
    struct reader items = reader_from(part->items);
    struct source_dot at = home->after;
    struct spot_place place;
    struct pull_item item;

    while (pull_item_next(&items, &item)) {
        PROMISE(t->sim, next_changed(t, source, home->home, at, &place),
                "a change is told that there is not");
        check_item(t, source, &item, &place);
        at = item.dot;
    }
    PROMISE(t->sim, !items.bad, "an item cannot be read");
    bool more = next_changed(t, source, home->home, at, &place);
    PROMISE(t->sim, part->more || !more, "changes are left out, and not said to be");
    PROMISE(t->sim, more || !part->more || part->items.size == 0,
            "more changes are announced than there are");
    PROMISE(t->sim, !source_dot_is_above(part->to, at) && !source_dot_is_above(at, part->to),
            "an answer says to go further than it does");
    PROMISE(t->sim, part->emptied == has_emptied(t, source, home),
            "targets without edges are told of, or not");
}

/* The homes that say how far they are, each in its turn. */
static void check_listed(struct tops *t, uint32_t source, const pull_request *request,
                         struct reader *parts, bool *ret_listed)
{
    struct reader homes = reader_from(bytes_of(&request->homes));
    struct pull_home home;
    struct pull_part part;
    uint32_t looked_at = 0;

    while (pull_home_next(&homes, &home)) {
        ret_listed[home.home] = true;
        PROMISE(t->sim, pull_part_next(parts, &part) && part.home == home.home,
                "home %u is not told of", home.home);
        check_part(t, source, &home, &part);
        looked_at += part.items.size > 0;
        PROMISE(t->sim, !part.more || part.items.size > 0 || looked_at >= PULL_LOOKS_MAX,
                "home %u is put off, and few were looked at", home.home);
    }
    PROMISE(t->sim, !homes.bad, "a home that asks cannot be read");
}

/* Those that say nothing: they have logged all up to `since`, and are told what is above that. */
static void check_others(struct tops *t, uint32_t source, const pull_request *request,
                         struct reader *parts, const bool *listed)
{
    const struct source_dot since = { request->since_epoch, request->since_counter };
    struct pull_part part = { .home = UINT32_MAX };
    struct spot_place place;
    bool any = pull_part_next(parts, &part);

    for (uint32_t i = 0; i < t->shard_count; i++) {
        const struct pull_home home = { i, since };
        if (listed[i] || (request->wanted.data[i / 8] >> i % 8 & 1) == 0)
            continue;
        if (next_changed(t, source, i, t->logged[i][source], &place))
            PROMISE(t->sim,
                    source_dot_is_above(
                        t->targets[place.target].spots[place.collection][source].changed, since),
                    "home %u lacks a change, and does not say so", i);
        if (any && part.home == i) {
            check_part(t, source, &home, &part);
            any = pull_part_next(parts, &part);
        } else {
            PROMISE(t->sim, !next_changed(t, source, i, since, &place),
                    "home %u has something new, and is not told of", i);
            PROMISE(t->sim, !has_emptied(t, source, &home),
                    "home %u is not told of targets without edges", i);
        }
    }
    PROMISE(t->sim, !any, "another home is told of");
}

static void check_pull(struct tops *t, uint32_t source, const pull_request *request,
                       const pull_response *told)
{
    struct reader parts = reader_from(bytes_of(&told->parts));
    bool listed[TOPS_SHARDS] = { false };
    struct pull_part part;

    check_listed(t, source, request, &parts, listed);
    PROMISE(t->sim, told->follows || request->since_epoch > 0,
            "nothing may be asked for since this answer");
    if (told->follows && request->since_epoch > 0)
        check_others(t, source, request, &parts, listed);
    PROMISE(t->sim, !pull_part_next(&parts, &part), "another home is told of");
    PROMISE(t->sim, told->at_ms == (int64_t)t->shards[source].now_ms, "another moment is told");
}

static void check_known(struct tops *t, uint32_t home, const pulled_response *told)
{
    struct reader sources = reader_from(bytes_of(&told->sources));
    struct pull_home source = { 0 };
    int64_t last = -1;

    for (uint32_t i = 0; i < t->shard_count; i++) {
        if (t->logged[home][i].epoch == 0)
            continue;
        PROMISE(t->sim,
                pull_home_next(&sources, &source) && source.home == i &&
                    is_same(source.after, t->logged[home][i]),
                "of shard %u home %u knows another place", i, home);
        PROMISE(t->sim, (int64_t)source.home > last, "sources out of order");
        last = source.home;
    }
    PROMISE(t->sim, !pull_home_next(&sources, &source), "home %u knows of a shard %u", home,
            source.home);
}

/* ---- what a home logs ---- */

static struct tops_share *share_of(struct tops *t, uint32_t source, const struct pull_item *item)
{
    for (uint32_t i = 0; i < t->target_count; i++) {
        if (slice_equal(item->target, slice_from_text(t->targets[i].name)))
            return &t->targets[i].shares[item->collection - tops_number(0)][source];
    }
    rsim_broken(t->sim, "a target that there is not is logged");
}

static void log_item(struct tops *t, uint32_t source, const struct pull_item *item)
{
    struct tops_share *share = share_of(t, source, item);

    *share = (struct tops_share){ .count = (uint32_t)item->count };
    CHECK(item->hours.count <= TOPS_PLAYERS);
    share->hour_count = item->hours.count;
    memcpy(share->hours, item->hours.list, item->hours.count * sizeof *share->hours);
}

static void log_parts(struct tops *t, uint32_t home, const take_request *request,
                      const take_response *told)
{
    uint32_t taken = 0, known = 0, gaps = 0;
    struct pull_item item;

    for (size_t i = 0; i < request->n_parts; i++) {
        const Holdfast__Internal__V1__PulledPart *part = request->parts[i];
        struct source_dot *logged = &t->logged[home][part->source];
        const struct source_dot after = { part->after_epoch, part->after_counter };
        const struct source_dot to = { part->to_epoch, part->to_counter };
        struct reader reader = reader_from(bytes_of(&part->items));

        if (source_dot_is_above(after, *logged)) {
            gaps++;
            continue;
        }
        while (pull_item_next(&reader, &item)) {
            if (!source_dot_is_above(item.dot, *logged)) {
                known++;
                continue;
            }
            log_item(t, part->source, &item);
            *logged = item.dot;
            taken++;
        }
        if (source_dot_is_above(to, *logged))
            *logged = to;
    }
    PROMISE(t->sim, told->taken == taken && told->known == known && told->gaps == gaps,
            "%u items are logged, %u known, %u parts left out; not %u, %u, %u", told->taken,
            told->known, told->gaps, taken, known, gaps);
    t->sim->counts.tops_taken += taken;
    t->sim->counts.tops_known += known;
    t->sim->counts.tops_gaps += gaps;
}

static void forget(struct tops *t, uint32_t source, const forget_request *request,
                   const forget_response *told)
{
    struct reader homes = reader_from(bytes_of(&request->homes));
    struct pull_home home;
    uint32_t count = 0;

    while (pull_home_next(&homes, &home)) {
        for (uint32_t i = 0; i < t->target_count; i++) {
            for (uint32_t c = 0; c < TOPS_COLLECTIONS; c++) {
                struct tops_spot *spot = &t->targets[i].spots[c][source];
                if (t->targets[i].home[c] != home.home || !spot->kept || tops_count(spot) > 0 ||
                    source_dot_is_above(spot->changed, home.after))
                    continue;
                PROMISE(t->sim, !source_dot_is_above(spot->changed, t->logged[home.home][source]),
                        "what home %u has not logged is to be forgotten", home.home);
                spot->kept = false;
                count++;
            }
        }
    }
    PROMISE(t->sim, told->forgotten == count && !told->more, "%u targets are forgotten, not %u",
            told->forgotten, count);
    t->sim->counts.tops_forgotten += count;
}

bool tops_answer(struct tops *t, const struct pull_call *call, struct slice *ret_answer)
{
    static const struct {
        uint32_t method;
        bool writes;
        const ProtobufCMessageDescriptor *request;
    } calls[] = {
        { METHOD_GET_PULLED, false, &holdfast__internal__v1__get_pulled_request__descriptor },
        { METHOD_PULL_PARTIALS, false, &holdfast__internal__v1__pull_partials_request__descriptor },
        { METHOD_TAKE_PARTIALS, true, &holdfast__internal__v1__take_partials_request__descriptor },
        { METHOD_FORGET_PARTIALS, true,
          &holdfast__internal__v1__forget_partials_request__descriptor },
    };
    struct fixture *f = tops_shard(t, call->shard);
    uint32_t kind = 0;

    while (kind < ARRAY_SIZE(calls) && calls[kind].method != call->method)
        kind++;
    PROMISE(t->sim, kind < ARRAY_SIZE(calls), "a call of method %u", call->method);
    const ProtobufCMessage *request =
        arena_unpack(&t->sim->arena, calls[kind].request, call->request);
    PROMISE(t->sim, request != NULL, "a request cannot be read");
    const void *told = calls[kind].writes ? fixture_mutate(f, call->method, request)
                                          : fixture_read(f, call->method, request);
    if (told == NULL)
        return false;
    if (t->damaged)
        (void)applier_take_damage(f->applier);
    else if (kind == 0)
        check_known(t, call->shard, told);
    else if (kind == 1)
        check_pull(t, call->shard, (const void *)request, told);
    else if (kind == 2)
        log_parts(t, call->shard, (const void *)request, told);
    else
        forget(t, call->shard, (const void *)request, told);
    *ret_answer = arena_pack(&t->sim->arena, told);
    arena_reset(&f->arena);
    return true;
}

/* A part behind a gap, of which nothing may be logged; or one that says how far it is, and no more,
 * where nothing is to come before that. */
void tops_take_bare(struct tops *t)
{
    uint32_t home = (uint32_t)rsim_between(t->sim, 0, t->shard_count - 1);
    uint32_t source = (uint32_t)rsim_between(t->sim, 0, t->shard_count - 1);
    const struct source_dot logged = t->logged[home][source];
    const struct tops_target *target = &t->targets[rsim_between(t->sim, 0, t->target_count - 1)];
    Holdfast__Internal__V1__PulledPart part = HOLDFAST__INTERNAL__V1__PULLED_PART__INIT;
    Holdfast__Internal__V1__PulledPart *parts[] = { &part };
    take_request request = HOLDFAST__INTERNAL__V1__TAKE_PARTIALS_REQUEST__INIT;
    struct buf items = { 0 };
    struct spot_place unused;
    struct slice answer;
    bool gap = rsim_chance(t->sim, 50);

    if (t->damaged || target->home[0] != home ||
        (!gap && next_changed(t, source, home, logged, &unused)))
        return;
    const struct fixture *f = &t->shards[source];
    const struct pull_item item = { .dot = { logged.epoch + 2, 9 },
                                    .collection = tops_number(0),
                                    .target = slice_from_text(target->name),
                                    .count = 77 };
    pull_item_encode(&item, &items);
    part.source = source;
    part.after_epoch = logged.epoch + gap;
    part.after_counter = logged.counter;
    part.to_epoch = gap ? logged.epoch + 2 : f->epoch;
    part.to_counter = gap ? 9 : f->counter;
    part.items = (ProtobufCBinaryData){ gap ? items.size : 0, items.data };
    request.shard = home;
    request.parts = parts;
    request.n_parts = 1;
    const struct pull_call call = { .token = 1,
                                    .shard = home,
                                    .method = METHOD_TAKE_PARTIALS,
                                    .request = arena_pack(&t->sim->arena, &request.base) };
    PROMISE(t->sim, tops_answer(t, &call, &answer), "a part is refused");
    buf_deinit(&items);
}

/* ---- lists ---- */

/* What a target counts for at its home, by what was logged; of edges from `first` on. In a damaged
 * world, by the edges. */
static uint64_t counted(const struct tops *t, const struct tops_target *target, uint32_t collection,
                        uint32_t first)
{
    uint64_t count = 0;

    for (uint32_t s = 0; s < t->shard_count; s++) {
        const struct tops_share *share = &target->shares[collection][s];
        const struct tops_spot *spot = &target->spots[collection][s];
        for (uint32_t p = 0; p < TOPS_PLAYERS && t->damaged; p++)
            count += spot->made_ms[p] > 0 && hour_of(spot->made_ms[p]) >= first;
        if (t->damaged)
            continue;
        count += first == 0 ? share->count : 0;
        for (uint32_t i = 0; i < share->hour_count && first > 0; i++)
            count += share->hours[i].hour >= first ? share->hours[i].count : 0;
    }
    return count;
}

static const struct tops_target *target_named(const struct tops *t, const char *name)
{
    for (uint32_t i = 0; i < t->target_count; i++) {
        if (strcmp(t->targets[i].name, name) == 0)
            return &t->targets[i];
    }
    return NULL;
}

struct tops_list {
    uint32_t home, collection;
    uint32_t first; /* The hour from which edges count; 0: all. */
    size_t wanted;  /* Targets with any. */
    uint32_t limit;
};

static void check_list(struct tops *t, const struct tops_list *list,
                       Holdfast__V1__TopEntry *const *told, size_t count)
{
    uint64_t last = UINT64_MAX;

    PROMISE(t->sim, count == (list->wanted < list->limit ? list->wanted : list->limit),
            "%zu of %zu targets are listed", count, list->wanted);
    for (size_t i = 0; i < count; i++) {
        const struct tops_target *target = target_named(t, told[i]->target_id);
        PROMISE(t->sim, target != NULL && target->home[list->collection] == list->home,
                "\"%s\" is listed", told[i]->target_id);
        PROMISE(t->sim, told[i]->count == counted(t, target, list->collection, list->first),
                "\"%s\" is listed with %" PRIu64 " edges from hour %u on", target->name,
                told[i]->count, list->first);
        PROMISE(t->sim,
                told[i]->count < last || (told[i]->count == last &&
                                          strcmp(told[i - 1]->target_id, told[i]->target_id) < 0),
                "\"%s\" is out of its place", target->name);
        last = told[i]->count;
    }
    /* None that is left out belongs before the last. */
    for (uint32_t i = 0; i < t->target_count && count == list->limit; i++) {
        const struct tops_target *target = &t->targets[i];
        if (target->home[list->collection] != list->home)
            continue;
        uint64_t own = counted(t, target, list->collection, list->first);
        bool before =
            own > last || (own == last && strcmp(target->name, told[count - 1]->target_id) < 0);
        bool listed = false;
        for (size_t k = 0; k < count; k++)
            listed |= strcmp(told[k]->target_id, target->name) == 0;
        PROMISE(t->sim, listed || !before, "\"%s\" is left out of a list", target->name);
    }
}

void tops_tell_list(struct tops *t, uint32_t home)
{
    static const Holdfast__V1__TopWindow windows[] = {
        HOLDFAST__V1__TOP_WINDOW__TOP_WINDOW_UNSPECIFIED, HOLDFAST__V1__TOP_WINDOW__TOP_WINDOW_24H,
        HOLDFAST__V1__TOP_WINDOW__TOP_WINDOW_7D, HOLDFAST__V1__TOP_WINDOW__TOP_WINDOW_ALL
    };
    static const uint32_t widths[] = { 0, HOURS_DAY, HOURS_MAX, 0 };
    static const uint32_t limits[] = { 1, 2, 3, 5, LIMIT_MAX };
    Holdfast__Internal__V1__GetShardTopRequest request =
        HOLDFAST__INTERNAL__V1__GET_SHARD_TOP_REQUEST__INIT;
    struct fixture *f = tops_shard(t, home);
    uint64_t which = rsim_between(t->sim, 0, 3);
    struct tops_list list = { .home = home };

    list.collection = (uint32_t)rsim_between(t->sim, 0, TOPS_COLLECTIONS - 1);
    list.first = widths[which] > 0 ? hour_of(f->now_ms) - widths[which] + 1 : 0;
    list.limit = RSIM_PICK(t->sim, limits);
    for (uint32_t i = 0; i < t->target_count; i++)
        list.wanted += t->targets[i].home[list.collection] == home &&
                       counted(t, &t->targets[i], list.collection, list.first) > 0;
    request.shard = home;
    request.collection = text_lend(tops_collections[list.collection]);
    request.window = windows[which];
    request.limit = list.limit;
    const Holdfast__Internal__V1__GetShardTopResponse *told =
        fixture_read(f, METHOD_GET_SHARD_TOP, &request.base);
    PROMISE(t->sim, told != NULL, "a list is refused: %s", f->error->message);
    check_list(t, &list, told->entries, told->n_entries);
    PROMISE(t->sim,
            told->at_ms == (int64_t)f->now_ms &&
                told->collection_number == tops_number(list.collection),
            "a list of collection %" PRIu64 " at %" PRId64, told->collection_number, told->at_ms);
    arena_reset(&f->arena);
    t->sim->counts.tops_listed++;
}

static void refused(struct tops *t, struct fixture *f, const void *told, const char *field)
{
    PROMISE(t->sim, told == NULL, "what is malformed is done: \"%s\"", field);
    PROMISE(t->sim,
            f->error->code == HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INVALID_ARGUMENT &&
                strcmp(f->error->field, field) == 0,
            "\"%s\" is refused for \"%s\"", field, f->error->field);
}

static void refuse_parts(struct tops *t, struct fixture *f)
{
    take_request request = HOLDFAST__INTERNAL__V1__TAKE_PARTIALS_REQUEST__INIT;
    Holdfast__Internal__V1__PulledPart part = HOLDFAST__INTERNAL__V1__PULLED_PART__INIT;
    Holdfast__Internal__V1__PulledPart *parts[TOPS_SHARDS + 1];
    struct buf items = { 0 };
    struct pull_item item = { .dot = { 1, 1 }, .collection = 7, .count = 1 };

    for (uint32_t i = 0; i <= TOPS_SHARDS; i++)
        parts[i] = &part;
    request.parts = parts;
    request.n_parts = 1;
    part.source = t->shard_count;
    refused(t, f, fixture_mutate(f, METHOD_TAKE_PARTIALS, &request.base), "parts[0]");
    part.source = 0;
    request.n_parts = t->shard_count + 1;
    refused(t, f, fixture_mutate(f, METHOD_TAKE_PARTIALS, &request.base), "parts");
    request.n_parts = 0;
    request.sweep = TAKE_SWEEP_MAX + 1;
    refused(t, f, fixture_mutate(f, METHOD_TAKE_PARTIALS, &request.base), "sweep");
    request.sweep = 0;
    request.n_parts = 1;
    for (uint32_t i = 0; i < t->target_count; i++) {
        if (t->targets[i].home[0] == f->shard)
            continue;
        buf_clear(&items);
        item.target = slice_from_text(t->targets[i].name);
        pull_item_encode(&item, &items);
        part.items = (ProtobufCBinaryData){ items.size, items.data };
        refused(t, f, fixture_mutate(f, METHOD_TAKE_PARTIALS, &request.base), "parts[0]");
    }
    buf_deinit(&items);
}

/* What no home and no source is asked. */
void tops_tell_refused(struct tops *t)
{
    struct fixture *f = tops_shard(t, (uint32_t)rsim_between(t->sim, 0, t->shard_count - 1));
    Holdfast__Internal__V1__GetShardTopRequest top =
        HOLDFAST__INTERNAL__V1__GET_SHARD_TOP_REQUEST__INIT;
    pull_request pull = HOLDFAST__INTERNAL__V1__PULL_PARTIALS_REQUEST__INIT;
    forget_request forgets = HOLDFAST__INTERNAL__V1__FORGET_PARTIALS_REQUEST__INIT;
    struct buf homes = { 0 };

    refused(t, f, fixture_read(f, METHOD_GET_SHARD_TOP, &top.base), "limit");
    top.limit = LIMIT_MAX + 1;
    refused(t, f, fixture_read(f, METHOD_GET_SHARD_TOP, &top.base), "limit");
    pull_home_encode(&(struct pull_home){ .home = t->shard_count }, &homes);
    pull.homes = forgets.homes = (ProtobufCBinaryData){ homes.size, homes.data };
    refused(t, f, fixture_read(f, METHOD_PULL_PARTIALS, &pull.base), "homes");
    refused(t, f, fixture_mutate(f, METHOD_FORGET_PARTIALS, &forgets.base), "homes");
    pull.homes.len = forgets.homes.len = homes.size - 1;
    refused(t, f, fixture_read(f, METHOD_PULL_PARTIALS, &pull.base), "homes");
    refused(t, f, fixture_mutate(f, METHOD_FORGET_PARTIALS, &forgets.base), "homes");
    buf_clear(&homes);
    for (uint32_t i = 0; i <= FORGET_HOMES_MAX; i++)
        pull_home_encode(&(struct pull_home){ 0 }, &homes);
    forgets.homes = (ProtobufCBinaryData){ homes.size, homes.data };
    refused(t, f, fixture_mutate(f, METHOD_FORGET_PARTIALS, &forgets.base), "homes");
    refuse_parts(t, f);
    buf_deinit(&homes);
}

/* ---- rows at rest ---- */

struct standing {
    uint32_t partials, notes, emptied, shares, tallies, places;
};

static void check_tally(struct tops *t, const struct fixture *f, const struct fixture_row *row)
{
    struct top_key key;
    struct tally_row tally;
    uint32_t hour = hour_of(f->now_ms);

    PROMISE(t->sim,
            top_key_parse(buf_slice(&row->key), &key) == ERR_OK &&
                tally_row_decode(buf_slice(&row->value), &tally) == ERR_OK,
            "a total cannot be read");
    char name[16] = "";
    memcpy(name, key.target.data, key.target.size < 15 ? key.target.size : 15);
    const struct tops_target *target = target_named(t, name);
    uint32_t c = (uint32_t)(key.collection - tops_number(0));
    PROMISE(t->sim, target != NULL && target->home[c] == f->shard, "a total of \"%s\"", name);
    PROMISE(t->sim,
            tally.count == counted(t, target, c, 0) &&
                tally.day == counted(t, target, c, hour - HOURS_DAY + 1) &&
                tally.week == counted(t, target, c, hour - HOURS_MAX + 1),
            "\"%s\" has %" PRIu64 " edges in all, %" PRIu64 " of a day, %" PRIu64 " of a week",
            name, tally.count, tally.day, tally.week);
}

static void look_at_row(struct tops *t, const struct fixture *f, const struct fixture_row *row,
                        struct standing *standing)
{
    switch ((int)row->key.data[0]) {
    case TABLE_PARTIAL:
        standing->partials++;
        break;
    case TABLE_CHANGED:
        standing->notes++;
        break;
    case TABLE_EMPTIED:
        standing->emptied++;
        break;
    case TABLE_SHARE:
        standing->shares++;
        break;
    case TABLE_TALLY:
        standing->tallies++;
        check_tally(t, f, row);
        break;
    case TABLE_RANK:
        standing->places++;
        break;
    default:
        break;
    }
}

/* As many rows as the edges want. Nothing is left of a target without edges. */
void tops_check_rows(struct tops *t, uint32_t shard)
{
    struct fixture *f = tops_shard(t, shard);
    struct standing standing = { 0 }, wanted = { 0 };
    uint32_t hour = hour_of(f->now_ms);

    fixture_check_edges(f);
    for (uint32_t i = 0; i < f->row_count; i++)
        look_at_row(t, f, &f->rows[i], &standing);
    for (uint32_t i = 0; i < t->target_count; i++) {
        const struct tops_target *target = &t->targets[i];
        for (uint32_t c = 0; c < TOPS_COLLECTIONS; c++) {
            wanted.partials += tops_count(&target->spots[c][shard]) > 0;
            if (target->home[c] != shard)
                continue;
            uint32_t shares = 0;
            for (uint32_t s = 0; s < t->shard_count; s++)
                shares += tops_count(&target->spots[c][s]) > 0;
            wanted.shares += shares;
            wanted.tallies += shares > 0;
            wanted.places += shares > 0;
            wanted.places += counted(t, target, c, hour - HOURS_DAY + 1) > 0;
            wanted.places += counted(t, target, c, hour - HOURS_MAX + 1) > 0;
        }
    }
    PROMISE(t->sim, standing.partials == wanted.partials, "%u counts stand, not %u",
            standing.partials, wanted.partials);
    bool notes = standing.notes == wanted.partials ||
                 (t->damaged && standing.notes > wanted.partials); /* Repairs leave some alone. */
    PROMISE(t->sim, notes && standing.emptied == 0,
            "%u notes of %u counts, and %u of targets without edges", standing.notes,
            wanted.partials, standing.emptied);
    PROMISE(t->sim, standing.shares == wanted.shares && standing.tallies == wanted.tallies,
            "%u parts of %u totals, not %u of %u", standing.shares, standing.tallies, wanted.shares,
            wanted.tallies);
    PROMISE(t->sim, t->damaged || standing.places == wanted.places, "%u places in lists, not %u",
            standing.places, wanted.places);
}
