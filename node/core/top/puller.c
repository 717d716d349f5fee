#include "node/core/top/puller.h"

#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "runtime/base/arena.h"
#include "runtime/base/check.h"
#include "runtime/codec/proto_codec.h"

typedef Holdfast__Internal__V1__TakePartialsRequest take_request;
typedef Holdfast__Internal__V1__PulledPart pulled_part;

enum phase { IDLE, LOOKING, PULLING, TAKING, FORGETTING };

/* One source's part of what a home is to log. */
struct taken {
    uint32_t source;
    struct source_dot after, to;
    uint32_t offset, size; /* In the home's bytes. */
    bool more;
};

struct home {
    bool in_round;
    bool known;                /* `logged` is what the home has logged. */
    bool looks;                /* It is asked for that in this round. */
    uint64_t looked_ms;        /* When it last was. */
    struct source_dot *logged; /* By source; NULL: not owned. */
    /* By source: it has not logged all that the source had when that was asked last, as far as this
     * node knows, and says how far it is. */
    bool *open;
    /* Of the round under way. */
    bool more;        /* Some source did not tell all that it has for it. */
    uint32_t told_by; /* The source that told a part last, plus one: each tells one. */
    struct buf bytes;
    uint32_t items;
    struct taken *taken; /* At most one a source. */
    uint32_t taken_count, taken_room;
    /* Sweeping: since which hour, and behind which target. */
    uint32_t hour;
    bool sweeping;
    struct buf swept;
    int64_t pulled_ms;
    int64_t since_ms; /* Owned by this node. */
};

/* What one source is asked to forget: for each home, how far that has logged it. */
struct forgets {
    struct buf homes;
    uint32_t count;
};

/* Up to where every home that is wanted has logged what a source has, but those that are open. */
struct follows {
    uint64_t epoch, owner, counter; /* What it had applied; 0: not known, all are open. */
    uint32_t open;                  /* Homes. */
};

struct slot {
    uint64_t token; /* 0: free. */
    uint32_t shard;
    struct buf request;
};

struct puller {
    uint32_t shard_count;
    struct home *homes;
    struct forgets *forgets; /* By source. */
    struct follows *follows; /* By source. */
    uint8_t *wanted;         /* Of this round: a bit for each home whose `logged` is known. */
    uint32_t wanted_count;
    uint32_t answered; /* Sources of this round, */
    int64_t from_ms;   /* and when the first of them was read. */
    enum phase phase;
    uint32_t next;       /* The shard that the phase comes to next. */
    uint32_t first;      /* Of the sources: each round begins with another. */
    uint32_t first_home; /* Of what a source is asked for: it looks at some alone. */
    uint32_t hour;
    uint64_t unix_ms; /* When the last round began. */
    uint64_t begun_ms;
    uint64_t watched_until_ms;
    bool more;
    bool busy; /* The last round had something to log. */
    struct slot slots[PULLER_WINDOW];
    uint32_t open;
    uint64_t tokens;
    uint64_t moves;
    struct puller_stats stats;
};

/* ---- what is kept ---- */
static size_t wanted_bytes(const struct puller *puller)
{
    return (puller->shard_count + 7) / 8;
}

static bool is_wanted(const struct home *home)
{
    return home->in_round && home->known;
}

struct puller *puller_new(uint32_t shard_count)
{
    struct puller *puller = mem_zalloc(sizeof *puller);

    puller->shard_count = shard_count;
    puller->homes = mem_zalloc(shard_count * sizeof *puller->homes);
    puller->forgets = mem_zalloc(shard_count * sizeof *puller->forgets);
    puller->follows = mem_zalloc(shard_count * sizeof *puller->follows);
    puller->wanted = mem_zalloc(wanted_bytes(puller));
    return puller;
}

void puller_free(struct puller *puller)
{
    if (puller == NULL)
        return;
    for (uint32_t i = 0; i < puller->shard_count; i++) {
        free(puller->homes[i].logged);
        free(puller->homes[i].open);
        free(puller->homes[i].taken);
        buf_deinit(&puller->homes[i].bytes);
        buf_deinit(&puller->homes[i].swept);
        buf_deinit(&puller->forgets[i].homes);
    }
    for (uint32_t i = 0; i < PULLER_WINDOW; i++)
        buf_deinit(&puller->slots[i].request);
    free(puller->homes);
    free(puller->forgets);
    free(puller->follows);
    free(puller->wanted);
    free(puller);
}

int64_t puller_pulled_ms(const struct puller *puller, uint32_t home)
{
    CHECK(home < puller->shard_count);
    return puller->homes[home].pulled_ms;
}

uint64_t puller_moves(const struct puller *puller)
{
    return puller->moves;
}

uint64_t puller_behind_ms(const struct puller *puller, uint64_t unix_ms)
{
    int64_t oldest_ms = INT64_MAX;

    for (uint32_t i = 0; i < puller->shard_count; i++) {
        const struct home *home = &puller->homes[i];
        int64_t pulled_ms = home->pulled_ms > home->since_ms ? home->pulled_ms : home->since_ms;
        if (home->in_round && pulled_ms < oldest_ms)
            oldest_ms = pulled_ms;
    }
    return oldest_ms < (int64_t)unix_ms ? unix_ms - (uint64_t)oldest_ms : 0;
}

struct puller_stats puller_stats(const struct puller *puller)
{
    return puller->stats;
}

bool puller_is_busy(const struct puller *puller)
{
    return puller->phase != IDLE;
}

/* ---- a round ---- */
static void open_set(struct puller *puller, struct home *home, uint32_t source, bool open)
{
    struct follows *follows = &puller->follows[source];

    if (home->open[source] == open)
        return;
    home->open[source] = open;
    follows->open += open ? 1 : -1u;
    CHECK(follows->open <= puller->shard_count);
}

/* For all sources. */
static void home_open(struct puller *puller, struct home *home, bool open)
{
    for (uint32_t i = 0; i < puller->shard_count; i++)
        open_set(puller, home, i, open);
}

/* What a round came to is kept no longer than the round: it may be much, of each home. */
static void home_rest(struct home *home)
{
    free(home->taken);
    home->taken = NULL;
    home->items = home->taken_count = home->taken_room = 0;
    buf_deinit(&home->bytes);
    home->bytes = (struct buf){ 0 };
}

/* Of a home of another node's nothing is kept but what puller_pulled_ms tells: a place and a part
 * for each source come to much where shards are many. */
static void home_release(struct puller *puller, struct home *home)
{
    if (home->logged != NULL)
        home_open(puller, home, false);
    home_rest(home);
    free(home->logged);
    free(home->open);
    home->logged = NULL;
    home->open = NULL;
    home->told_by = 0;
    buf_deinit(&home->swept);
    home->swept = (struct buf){ 0 };
}

static void home_begin(struct puller *puller, struct home *home, bool owned)
{
    if (home->in_round && !owned)
        home->known = false; /* Another owner may log what this node does not see. */
    if (!home->in_round && owned) {
        home->since_ms = (int64_t)puller->unix_ms;
        home->hour = 0; /* The owner before may not have swept the last ones. */
        home->sweeping = false;
    }
    home->in_round = owned;
    if (!owned) {
        home_release(puller, home);
        return;
    }
    if (home->logged == NULL) {
        home->logged = mem_zalloc(puller->shard_count * sizeof *home->logged);
        home->open = mem_zalloc(puller->shard_count * sizeof *home->open);
        home_open(puller, home, true);
    }
    home->looks = !home->known || puller->begun_ms - home->looked_ms >= PULLER_LOOK_MS;
    if (home->hour != puller->hour && !home->sweeping) {
        home->sweeping = true;
        home->hour = puller->hour;
        buf_clear(&home->swept);
    }
    home->told_by = 0;
    home->more = false;
    home_rest(home);
}

void puller_watch(struct puller *puller, uint64_t now_ms)
{
    puller->watched_until_ms = now_ms + PULLER_WATCH_MS;
}

uint64_t puller_next_ms(const struct puller *puller)
{
    bool busy = puller->busy && puller->begun_ms <= puller->watched_until_ms;

    CHECK(!puller_is_busy(puller));
    if (puller->begun_ms == 0)
        return 0;
    return puller->begun_ms + (puller->more ? PULLER_AGAIN_MS
                               : busy       ? PULLER_BUSY_MS
                                            : PULLER_EVERY_MS);
}

/* Behind as many homes as a source may have looked at in the round before. */
static void turn_homes(struct puller *puller)
{
    uint32_t passed = 0;

    for (uint32_t i = 0; i < puller->shard_count && passed < PULL_LOOKS_MAX; i++) {
        passed += puller->homes[puller->first_home].in_round;
        puller->first_home = (puller->first_home + 1) % puller->shard_count;
    }
}

void puller_begin(struct puller *puller, uint64_t now_ms, uint64_t unix_ms, const bool *owned)
{
    bool any = false;

    if (puller_is_busy(puller) || now_ms < puller_next_ms(puller))
        return;
    puller->begun_ms = now_ms;
    puller->hour = hour_of(unix_ms);
    puller->unix_ms = unix_ms;
    puller->more = puller->busy = false;
    puller->answered = 0;
    puller->from_ms = INT64_MAX;
    for (uint32_t i = 0; i < puller->shard_count; i++) {
        home_begin(puller, &puller->homes[i], owned[i]);
        puller->forgets[i].count = 0;
        buf_clear(&puller->forgets[i].homes);
        any = any || owned[i];
    }
    if (any) {
        puller->phase = LOOKING;
        puller->next = 0;
        puller->first = (puller->first + 1) % puller->shard_count;
        turn_homes(puller);
        puller->stats.rounds++;
    }
}

/* ---- requests ---- */
static void look_request(uint32_t shard, struct buf *out)
{
    Holdfast__Internal__V1__GetPulledRequest request =
        HOLDFAST__INTERNAL__V1__GET_PULLED_REQUEST__INIT;

    request.shard = shard;
    proto_encode(&request.base, out);
}

/* Whether the home says how far it has logged that source. */
static bool is_listed(const struct puller *puller, const struct home *home, uint32_t source)
{
    return is_wanted(home) && (puller->follows[source].epoch == 0 || home->open[source]);
}

static void list_homes(const struct puller *puller, uint32_t source, struct buf *out)
{
    for (uint32_t i = 0; i < puller->shard_count; i++) {
        uint32_t number = (puller->first_home + i) % puller->shard_count;
        const struct home *home = &puller->homes[number];
        if (!is_listed(puller, home, source))
            continue;
        const struct pull_home asks = { number, home->logged[source] };
        pull_home_encode(&asks, out);
    }
}

/* False: no home has anything to ask. */
static bool pull_request(const struct puller *puller, uint32_t source, struct buf *out)
{
    Holdfast__Internal__V1__PullPartialsRequest request =
        HOLDFAST__INTERNAL__V1__PULL_PARTIALS_REQUEST__INIT;
    const struct follows *follows = &puller->follows[source];
    struct buf homes = { 0 };

    if (puller->wanted_count == 0)
        return false;
    request.shard = source;
    if (follows->epoch > 0) {
        request.since_epoch = follows->epoch;
        request.since_owner = follows->owner;
        request.since_counter = follows->counter;
        request.wanted = (ProtobufCBinaryData){ wanted_bytes(puller), puller->wanted };
    }
    if (follows->epoch == 0 || follows->open > 0)
        list_homes(puller, source, &homes);
    request.homes = (ProtobufCBinaryData){ homes.size, homes.data };
    proto_encode(&request.base, out);
    buf_deinit(&homes);
    return true;
}

static bool has_something(const struct home *home)
{
    return home->in_round && home->known && (home->taken_count > 0 || home->sweeping);
}

static bool take_request_of(const struct puller *puller, uint32_t shard, struct buf *out)
{
    const struct home *home = &puller->homes[shard];
    take_request request = HOLDFAST__INTERNAL__V1__TAKE_PARTIALS_REQUEST__INIT;
    struct arena arena = { 0 };

    if (!has_something(home))
        return false;
    request.shard = shard;
    request.n_parts = home->taken_count;
    request.parts = arena_alloc(&arena, (home->taken_count + 1) * sizeof *request.parts);
    for (uint32_t i = 0; i < home->taken_count; i++) {
        const struct taken *taken = &home->taken[i];
        pulled_part *part = arena_alloc(&arena, sizeof *part);
        holdfast__internal__v1__pulled_part__init(part);
        part->source = taken->source;
        part->after_epoch = taken->after.epoch;
        part->after_counter = taken->after.counter;
        part->to_epoch = taken->to.epoch;
        part->to_counter = taken->to.counter;
        part->items = (ProtobufCBinaryData){ taken->size, home->bytes.data + taken->offset };
        request.parts[i] = part;
    }
    if (home->sweeping) {
        request.sweep = TAKE_SWEEP_MAX;
        request.sweep_after = (ProtobufCBinaryData){ home->swept.size, home->swept.data };
    }
    proto_encode(&request.base, out);
    arena_deinit(&arena);
    return true;
}

static bool forget_request(const struct puller *puller, uint32_t source, struct buf *out)
{
    Holdfast__Internal__V1__ForgetPartialsRequest request =
        HOLDFAST__INTERNAL__V1__FORGET_PARTIALS_REQUEST__INIT;
    const struct forgets *forgets = &puller->forgets[source];

    if (forgets->count == 0)
        return false;
    request.shard = source;
    request.homes = (ProtobufCBinaryData){ forgets->homes.size, forgets->homes.data };
    proto_encode(&request.base, out);
    return true;
}

/* ---- calling ---- */
static bool make_request(struct puller *puller, uint32_t shard, struct buf *out,
                         uint32_t *ret_method)
{
    const struct home *home = &puller->homes[shard];

    switch (puller->phase) {
    case LOOKING:
        *ret_method = METHOD_GET_PULLED;
        if (!home->in_round || !home->looks)
            return false;
        look_request(shard, out);
        return true;
    case PULLING:
        *ret_method = METHOD_PULL_PARTIALS;
        return pull_request(puller, shard, out);
    case TAKING:
        *ret_method = METHOD_TAKE_PARTIALS;
        return take_request_of(puller, shard, out);
    case FORGETTING:
        *ret_method = METHOD_FORGET_PARTIALS;
        return forget_request(puller, shard, out);
    case IDLE:
        break;
    }
    return false;
}

static struct slot *free_slot(struct puller *puller)
{
    for (uint32_t i = 0; i < PULLER_WINDOW; i++) {
        if (puller->slots[i].token == 0)
            return &puller->slots[i];
    }
    return NULL;
}

/* All that the home was told of is logged. */
static void home_follows(struct puller *puller, struct home *home)
{
    if (home->known && !home->more && puller->answered == puller->shard_count &&
        puller->from_ms > home->pulled_ms) {
        home->pulled_ms = puller->from_ms;
        puller->moves++;
    }
}

/* The homes that ask. What one that does not ask misses is not known afterwards. */
static void look_end(struct puller *puller)
{
    memset(puller->wanted, 0, wanted_bytes(puller));
    puller->wanted_count = 0;
    for (uint32_t i = 0; i < puller->shard_count; i++) {
        struct home *home = &puller->homes[i];
        if (is_wanted(home)) {
            puller->wanted[i / 8] |= (uint8_t)(1u << i % 8);
            puller->wanted_count++;
        } else if (home->in_round) {
            home_open(puller, home, true);
        }
    }
}

static void pull_end(struct puller *puller)
{
    for (uint32_t i = 0; i < puller->shard_count; i++) {
        struct home *home = &puller->homes[i];
        if (!home->in_round)
            continue;
        puller->busy = puller->busy || home->taken_count > 0;
        if (home->taken_count == 0)
            home_follows(puller, home);
    }
}

static void round_end(struct puller *puller)
{
    for (uint32_t i = 0; i < puller->shard_count; i++) {
        const struct home *home = &puller->homes[i];
        puller->more = puller->more || (home->in_round && (home->more || home->sweeping));
    }
}

static void phase_end(struct puller *puller)
{
    puller->next = 0;
    if (puller->phase == LOOKING)
        look_end(puller);
    if (puller->phase == PULLING)
        pull_end(puller);
    if (puller->phase == FORGETTING)
        round_end(puller);
    puller->phase = puller->phase == FORGETTING ? IDLE : puller->phase + 1;
}

bool puller_next(struct puller *puller, struct pull_call *ret_call)
{
    while (puller->phase != IDLE) {
        struct slot *slot = free_slot(puller);
        if (puller->next == puller->shard_count) {
            if (puller->open > 0)
                return false;
            phase_end(puller);
            continue;
        }
        if (slot == NULL)
            return false;
        uint32_t shard = puller->next++;
        if (puller->phase == PULLING)
            shard = (shard + puller->first) % puller->shard_count;
        buf_clear(&slot->request);
        if (!make_request(puller, shard, &slot->request, &ret_call->method))
            continue;
        if (puller->phase == PULLING)
            puller->stats.asked_bytes += slot->request.size;
        slot->token = ++puller->tokens;
        slot->shard = shard;
        puller->open++;
        ret_call->token = slot->token;
        ret_call->shard = shard;
        ret_call->request = buf_slice(&slot->request);
        return true;
    }
    return false;
}

/* ---- answers ---- */
static ProtobufCMessage *decode(const ProtobufCMessageDescriptor *descriptor, struct slice body,
                                struct arena *arena)
{
    struct codec_scope scope = { .arena = arena };
    ProtobufCMessage *message;

    return proto_decode(descriptor, body, &scope, &message) == ERR_OK ? message : NULL;
}

static void looked(struct puller *puller, struct home *home, const ProtobufCMessage *message)
{
    const Holdfast__Internal__V1__GetPulledResponse *response = (const void *)message;
    struct reader reader =
        reader_from((struct slice){ response->sources.data, response->sources.len });
    struct pull_home source;

    struct source_dot *before = mem_zalloc(puller->shard_count * sizeof *before);
    memcpy(before, home->logged, puller->shard_count * sizeof *before);
    memset(home->logged, 0, puller->shard_count * sizeof *home->logged);
    while (pull_home_next(&reader, &source)) {
        if (source.home < puller->shard_count)
            home->logged[source.home] = source.after;
    }
    for (uint32_t i = 0; i < puller->shard_count; i++) {
        if (memcmp(&before[i], &home->logged[i], sizeof *before) != 0)
            open_set(puller, home, i, true);
    }
    free(before);
    home->known = !reader.bad;
    home->looked_ms = puller->begun_ms;
}

static uint32_t count_items(struct slice items)
{
    struct reader reader = reader_from(items);
    struct pull_item item;
    uint32_t count = 0;

    while (pull_item_next(&reader, &item))
        count++;
    return count;
}

static void keep_part(struct home *home, uint32_t source, const struct pull_part *part)
{
    uint32_t items = count_items(part->items);

    if (!source_dot_is_above(part->to, home->logged[source]))
        return;
    if (home->bytes.size + part->items.size > TAKE_BYTES_MAX ||
        home->items + items > TAKE_ITEMS_MAX) {
        home->more = true;
        return;
    }
    if (home->taken_count == home->taken_room) {
        home->taken_room = home->taken_room > 0 ? home->taken_room * 2 : 4;
        home->taken = mem_realloc(home->taken, home->taken_room * sizeof *home->taken);
    }
    home->taken[home->taken_count++] = (struct taken){
        .source = source,
        .after = home->logged[source],
        .to = part->to,
        .offset = (uint32_t)home->bytes.size,
        .size = (uint32_t)part->items.size,
        .more = part->more,
    };
    buf_append(&home->bytes, part->items.data, part->items.size);
    home->items += items;
}

/* What the home asked for, it has logged: that was read or answered before the request was made. */
static void keep_emptied(struct puller *puller, uint32_t source, uint32_t home)
{
    struct forgets *forgets = &puller->forgets[source];
    const struct pull_home logged = { home, puller->homes[home].logged[source] };

    if (forgets->count == FORGET_HOMES_MAX) {
        puller->more = true;
        return;
    }
    pull_home_encode(&logged, &forgets->homes);
    forgets->count++;
}

/* One part of a source's answer, which is the first for its home. */
static void take_part(struct puller *puller, uint32_t source, const struct pull_part *part)
{
    struct home *home = &puller->homes[part->home];

    home->told_by = source + 1;
    home->more = home->more || part->more;
    open_set(puller, home, source,
             part->more || source_dot_is_above(part->to, home->logged[source]));
    keep_part(home, source, part);
    if (part->emptied)
        keep_emptied(puller, source, part->home);
}

/* Of those that were asked for and not told the source may have more: it is asked again soon. */
static void note_missed(struct puller *puller, uint32_t source, bool follows)
{
    for (uint32_t i = 0; i < puller->shard_count; i++) {
        struct home *home = &puller->homes[i];
        if (!is_wanted(home) || home->told_by == source + 1 ||
            (follows && !is_listed(puller, home, source)))
            continue;
        home->more = true;
        open_set(puller, home, source, true);
    }
}

static void pulled(struct puller *puller, uint32_t source, const ProtobufCMessage *message)
{
    const Holdfast__Internal__V1__PullPartialsResponse *response = (const void *)message;
    struct reader reader = reader_from((struct slice){ response->parts.data, response->parts.len });
    struct follows *of = &puller->follows[source];
    struct pull_part part;
    bool follows = response->follows || response->unchanged;
    bool looks = of->epoch == 0 || of->open > 0 || !follows; /* Else none can be missed. */

    puller->stats.bytes += response->parts.len;
    puller->stats.unchanged += follows && response->parts.len == 0;
    puller->answered++;
    if (response->at_ms < puller->from_ms)
        puller->from_ms = response->at_ms;
    while (pull_part_next(&reader, &part)) {
        const struct home *home =
            part.home < puller->shard_count ? &puller->homes[part.home] : NULL;
        if (home != NULL && is_wanted(home) && home->told_by != source + 1)
            take_part(puller, source, &part);
    }
    if (looks)
        note_missed(puller, source, follows);
    of->epoch = of->owner = of->counter = 0;
    if (!follows)
        return;
    of->epoch = response->as_of_epoch;
    of->owner = response->as_of_owner;
    of->counter = response->as_of_counter;
}

static void home_has_logged(struct puller *puller, struct home *home, const struct taken *taken)
{
    home->logged[taken->source] = taken->to;
    open_set(puller, home, taken->source, taken->more);
}

static void took(struct puller *puller, struct home *home, const ProtobufCMessage *message)
{
    const Holdfast__Internal__V1__TakePartialsResponse *response = (const void *)message;

    for (uint32_t i = 0; i < home->taken_count; i++)
        home_has_logged(puller, home, &home->taken[i]);
    home->known = response->gaps == 0;
    if (home->taken_count > 0)
        home_follows(puller, home);
    puller->stats.items += response->taken;
    if (!home->sweeping)
        return;
    buf_clear(&home->swept);
    buf_append(&home->swept, response->swept.data, response->swept.len);
    home->sweeping = response->swept.len > 0;
}

static void forgot(struct puller *puller, const ProtobufCMessage *message)
{
    const Holdfast__Internal__V1__ForgetPartialsResponse *response = (const void *)message;

    puller->stats.forgotten += response->forgotten;
    puller->more = puller->more || response->more;
}

static void answer(struct puller *puller, uint32_t shard, bool ok, struct slice body)
{
    static const ProtobufCMessageDescriptor *const answers[] = {
        [LOOKING] = &holdfast__internal__v1__get_pulled_response__descriptor,
        [PULLING] = &holdfast__internal__v1__pull_partials_response__descriptor,
        [TAKING] = &holdfast__internal__v1__take_partials_response__descriptor,
        [FORGETTING] = &holdfast__internal__v1__forget_partials_response__descriptor,
    };
    struct home *home = &puller->homes[shard];
    struct arena arena = { 0 };
    const ProtobufCMessage *message = ok ? decode(answers[puller->phase], body, &arena) : NULL;

    if (message == NULL) {
        puller->stats.failed++;
        if (puller->phase == TAKING)
            home->known = false; /* It may have been logged. */
    } else if (puller->phase == LOOKING) {
        looked(puller, home, message);
    } else if (puller->phase == PULLING) {
        pulled(puller, shard, message);
    } else if (puller->phase == FORGETTING) {
        forgot(puller, message);
    } else {
        took(puller, home, message);
    }
    arena_deinit(&arena);
}

void puller_answered(struct puller *puller, uint64_t token, bool ok, struct slice body)
{
    for (uint32_t i = 0; i < PULLER_WINDOW; i++) {
        struct slot *slot = &puller->slots[i];
        if (token == 0 || slot->token != token)
            continue;
        CHECK(puller->open > 0);
        slot->token = 0;
        buf_deinit(&slot->request);
        slot->request = (struct buf){ 0 };
        puller->open--;
        answer(puller, slot->shard, ok, body);
        return;
    }
}

static void check_home(const struct puller *puller, const struct home *home)
{
    size_t at = 0;

    CHECK(IMPLIES(home->in_round, home->logged != NULL));
    CHECK(IMPLIES(home->taken_count > 0, home->taken != NULL));
    CHECK(home->taken_count <= home->taken_room);
    CHECK(home->items <= TAKE_ITEMS_MAX);
    for (uint32_t i = 0; i < home->taken_count; i++) {
        CHECK(home->taken[i].source < puller->shard_count);
        CHECK(home->taken[i].offset == at);
        at += home->taken[i].size;
        for (uint32_t j = 0; j < i; j++)
            CHECK(home->taken[j].source != home->taken[i].source);
    }
    CHECK(at == home->bytes.size);
    CHECK(at <= TAKE_BYTES_MAX);
}

static void check_open(const struct puller *puller, uint32_t source)
{
    uint32_t open = 0;

    for (uint32_t i = 0; i < puller->shard_count; i++)
        open += puller->homes[i].open != NULL && puller->homes[i].open[source];
    CHECK(open == puller->follows[source].open);
}

void puller_check(const struct puller *puller)
{
    uint32_t open = 0;

    for (uint32_t i = 0; i < PULLER_WINDOW; i++) {
        open += puller->slots[i].token != 0;
        CHECK(puller->slots[i].token <= puller->tokens);
        CHECK(puller->slots[i].token == 0 || puller->slots[i].shard < puller->shard_count);
    }
    CHECK(open == puller->open);
    CHECK(puller->answered <= puller->shard_count);
    for (uint32_t i = 0; i < puller->shard_count; i++)
        check_open(puller, i);
    CHECK(IMPLIES(open > 0, puller->phase != IDLE)); /* A round ends with its calls. */
    CHECK(puller->next <= puller->shard_count);
    for (uint32_t i = 0; i < puller->shard_count; i++) {
        CHECK(puller->forgets[i].count <= FORGET_HOMES_MAX);
        check_home(puller, &puller->homes[i]);
    }
}
