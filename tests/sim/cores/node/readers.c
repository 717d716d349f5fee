/*
 * Whose place in the events is kept (events.proto; docs/events.md, Consumers): a commit follows the
 * version that it names, and goes back in no shard unless it says so; the change that was made last
 * is found again under its op_id; lists have each consumer once, in pages of any size; a shard has
 * no more of them than its limit.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/v1/events.pb-c.h"
#include "idl/error_code.h"
#include "node/core/codec/arena_proto.h"
#include "node/rpc/fixture.h"
#include "runtime/base/check.h"
#include "runtime/cluster/event_cursor.h"
#include "runtime/cluster/placement.h"
#include "tests/sim/cores/rsim.h"

#define SHARDS  4u
#define NAMES   70u
#define FEW     5u
#define LIMIT   64u
#define TURNS   80u
#define KIND(x) HOLDFAST__V1__EVENT_KIND__EVENT_KIND_##x

/* What was asked of one that stands, for a repetition; and what stands. */
struct worker {
    char name[16];
    bool exists, committed; /* The last change is a commit. */
    uint64_t version, created_ms, committed_ms;
    char *op_id, *cursor_asked; /* Of the last change. */
    uint64_t version_asked;
    bool rewind;
    char *entity;
    uint32_t kinds;
    struct event_cursor cursor; /* shard_count 0: it has committed nothing. */
    char *cursor_text;
};

struct desk {
    struct rsim *sim;
    struct fixture f;
    struct worker readers[NAMES]; /* By name. */
    uint32_t names, count;        /* In use; that exist. */
    uint64_t version;             /* The greatest that was told. */
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct worker *)a)->name, ((const struct worker *)b)->name);
}

/* Some begin as others do. */
static void names_make(struct desk *d)
{
    char entity[32];

    for (uint32_t number = 0, have = 0; have < d->names; number++) {
        struct worker *reader = &d->readers[have];

        (void)snprintf(reader->name, sizeof reader->name, "r%u", number);
        (void)snprintf(entity, sizeof entity, "consumer:%s", reader->name);
        have += shard_of_entity(slice_from_text(entity), SHARDS) == 0;
    }
    qsort(d->readers, d->names, sizeof *d->readers, by_name);
}

static char *keep(struct desk *d, const char *text)
{
    return arena_text(&d->sim->arena, slice_from_text(text));
}

static bool refused_with(struct desk *d, Holdfast__V1__ErrorCode code)
{
    return d->f.error != NULL && d->f.error->code == code;
}

/* ---- cursors ---- */

/* In each shard a little before or behind what is committed. */
static struct event_cursor cursor_make(struct desk *d, const struct event_cursor *from)
{
    struct event_cursor cursor;

    event_cursor_init(&cursor, SHARDS, &d->sim->arena);
    cursor.counts = true;
    for (uint32_t i = 0; i < SHARDS; i++) {
        struct event_known *known = &cursor.known[i];
        uint64_t place = from->shard_count > 0 ? from->known[i].place[19] : 1;

        if (rsim_chance(d->sim, 10))
            continue; /* Nothing is known of it. */
        if (rsim_chance(d->sim, 40))
            place = rsim_chance(d->sim, 70) ? place + 1 : place > 1 ? place - 1 : place;
        known->any = true;
        known->life = from->shard_count > 0 ? from->known[i].life : 1;
        known->life += rsim_chance(d->sim, 5);
        known->place[19] = (uint8_t)place;
        known->passed = place + 1;
        known->passed_ms = 1000 * place + i;
    }
    return cursor;
}

/* In one shard alone is enough; places of two lives have no order. */
static bool goes_back(const struct event_cursor *was, const struct event_cursor *next)
{
    for (uint32_t i = 0; was->shard_count > 0 && i < SHARDS; i++) {
        const struct event_known *a = &was->known[i];

        if (!a->any)
            continue;
        if (next->shard_count == 0 || !next->known[i].any)
            return true;
        if (a->life == next->known[i].life && next->known[i].place[19] < a->place[19])
            return true;
    }
    return false;
}

/* Of the shards that its filter asks. */
static uint64_t caught_up_of(const struct worker *reader)
{
    bool one = strncmp(reader->entity, "player:", 7) == 0;
    uint32_t first = one ? shard_of_entity(slice_from_text(reader->entity), SHARDS) : 0;
    uint64_t least = UINT64_MAX;

    if (reader->cursor.shard_count == 0)
        return 0;
    for (uint32_t i = first; i < (one ? first + 1 : SHARDS); i++) {
        const struct event_known *known = &reader->cursor.known[i];
        uint64_t ms = known->any ? known->passed_ms : 0;

        least = ms < least ? ms : least;
    }
    return least;
}

static void told_check(struct desk *d, const struct worker *reader,
                       const Holdfast__V1__EventConsumer *told, bool listed)
{
    PROMISE(d->sim,
            strcmp(told->name, reader->name) == 0 && told->version == reader->version &&
                strcmp(told->entity, reader->entity) == 0 && told->n_kinds == reader->kinds,
            "%s is told as another one, of version %" PRIu64 " and not %" PRIu64, reader->name,
            told->version, reader->version);
    PROMISE(d->sim, strcmp(told->cursor, listed ? "" : reader->cursor_text) == 0,
            "%s is told with another cursor", reader->name);
    PROMISE(d->sim,
            told->created_at_ms == (int64_t)reader->created_ms &&
                told->committed_at_ms == (int64_t)reader->committed_ms,
            "%s is told as made or committed at another time", reader->name);
    PROMISE(d->sim, told->caught_up_ms == (int64_t)caught_up_of(reader),
            "%s has caught up until %" PRId64 ", not %" PRIu64, reader->name, told->caught_up_ms,
            caught_up_of(reader));
}

/* ---- changes ---- */

static void changed(struct desk *d, struct worker *reader, const Holdfast__V1__EventConsumer *told)
{
    PROMISE(d->sim, told->version > d->version, "a version that was told before: %" PRIu64,
            told->version);
    d->version = reader->version = told->version;
    told_check(d, reader, told, false);
}

static void create_turn(struct desk *d, struct worker *reader)
{
    Holdfast__V1__CreateConsumerRequest request = HOLDFAST__V1__CREATE_CONSUMER_REQUEST__INIT;
    Holdfast__V1__EventKind kinds[] = { KIND(LEDGER), KIND(SESSION) };
    const char *const entities[] = { "", "player:ann", "player:bob", "definition:counter/plays" };
    bool repeats = reader->exists && !reader->committed && rsim_chance(d->sim, 50);
    struct worker made = { .exists = true, .cursor_text = text_lend("") };

    request.consumer = reader->name;
    request.op_id = repeats ? reader->op_id : keep(d, fixture_op_id(&d->f));
    request.entity = repeats ? reader->entity : text_lend(RSIM_PICK(d->sim, entities));
    request.kinds = kinds;
    request.n_kinds = repeats ? reader->kinds : rsim_between(d->sim, 0, 2);
    bool other = repeats && rsim_chance(d->sim, 30);

    if (other)
        request.n_kinds = (request.n_kinds + 1) % 3;
    Holdfast__V1__ErrorCode code = other                           ? CODE(OPERATION_ID_MISMATCH)
                                   : reader->exists && !repeats    ? CODE(VERSION_CONFLICT)
                                   : !repeats && d->count == LIMIT ? CODE(CAPACITY_FULL)
                                                                   : 0;
    const Holdfast__V1__CreateConsumerResponse *told =
        fixture_mutate(&d->f, METHOD_CREATE_CONSUMER, &request.base);

    PROMISE(d->sim, (told != NULL) == (code == 0) && (told != NULL || refused_with(d, code)),
            "%u consumers, and one more: %s", d->count,
            told != NULL ? "made" : d->f.error->message);
    d->sim->counts.readers_full += code == CODE(CAPACITY_FULL);
    if (told == NULL)
        return;
    PROMISE(d->sim, (told->duplicate != 0) == repeats, "a repetition is told as %d",
            (int)told->duplicate);
    if (repeats) {
        told_check(d, reader, told->consumer, false);
        return;
    }
    memcpy(made.name, reader->name, sizeof made.name);
    made.op_id = request.op_id;
    made.entity = request.entity;
    made.kinds = (uint32_t)request.n_kinds;
    made.created_ms = d->f.now_ms;
    *reader = made;
    d->count++;
    changed(d, reader, told->consumer);
}

static void commit_turn(struct desk *d, struct worker *reader)
{
    Holdfast__V1__CommitConsumerRequest request = HOLDFAST__V1__COMMIT_CONSUMER_REQUEST__INIT;
    bool repeats = reader->exists && reader->committed && rsim_chance(d->sim, 25), other;
    struct event_cursor next = cursor_make(d, &reader->cursor);

    request.consumer = reader->name;
    request.op_id = repeats ? reader->op_id : keep(d, fixture_op_id(&d->f));
    request.rewind = repeats ? reader->rewind : rsim_chance(d->sim, 25);
    if (request.rewind && rsim_chance(d->sim, 20))
        next = (struct event_cursor){ 0 };
    request.cursor = repeats                ? reader->cursor_asked
                     : next.shard_count > 0 ? event_cursor_print(&next, &d->sim->arena)
                                            : text_lend("");
    request.version = repeats                   ? reader->version_asked
                      : rsim_chance(d->sim, 75) ? reader->version
                      : rsim_chance(d->sim, 50) ? reader->version + 1
                                                : reader->version / 2;
    if (!reader->exists && request.version == 0)
        request.version = 1;
    other = repeats && rsim_chance(d->sim, 30);
    if (other)
        request.version++;
    Holdfast__V1__ErrorCode code = request.version == 0 ? CODE(INVALID_ARGUMENT)
                                   : !reader->exists    ? CODE(NOT_FOUND)
                                   : other              ? CODE(OPERATION_ID_MISMATCH)
                                   : repeats            ? 0
                                   : request.version != reader->version ? CODE(VERSION_CONFLICT)
                                   : !request.rewind && goes_back(&reader->cursor, &next)
                                       ? CODE(OUT_OF_RANGE)
                                       : 0;
    const Holdfast__V1__CommitConsumerResponse *told =
        fixture_mutate(&d->f, METHOD_COMMIT_CONSUMER, &request.base);

    PROMISE(d->sim, (told != NULL) == (code == 0) && (told != NULL || refused_with(d, code)),
            "a commit of version %" PRIu64 " of %" PRIu64 "%s%s: %s", request.version,
            reader->version, request.rewind ? ", which may go back" : "",
            goes_back(&reader->cursor, &next) ? ", goes back" : "",
            told != NULL ? "done" : d->f.error->message);
    d->sim->counts.readers_refused += told == NULL;
    if (told == NULL)
        return;
    PROMISE(d->sim, (told->duplicate != 0) == repeats, "a repetition is told as %d",
            (int)told->duplicate);
    if (repeats) {
        told_check(d, reader, told->consumer, false);
        return;
    }
    reader->committed = true;
    reader->op_id = request.op_id;
    reader->cursor_asked = reader->cursor_text = request.cursor;
    reader->version_asked = request.version;
    reader->rewind = request.rewind;
    reader->cursor = next;
    reader->committed_ms = d->f.now_ms;
    changed(d, reader, told->consumer);
    d->sim->counts.readers_moved++;
}

static void delete_turn(struct desk *d, struct worker *reader)
{
    Holdfast__V1__DeleteConsumerRequest request = HOLDFAST__V1__DELETE_CONSUMER_REQUEST__INIT;

    request.consumer = reader->name;
    request.version = rsim_chance(d->sim, 50)   ? 0
                      : rsim_chance(d->sim, 60) ? reader->version
                                                : reader->version + 1;
    bool conflict = reader->exists && request.version != 0 && request.version != reader->version;
    const Holdfast__V1__DeleteConsumerResponse *told =
        fixture_mutate(&d->f, METHOD_DELETE_CONSUMER, &request.base);

    PROMISE(d->sim, (told == NULL) == conflict, "version %" PRIu64 " of %" PRIu64 " is deleted",
            request.version, reader->version);
    PROMISE(d->sim, told == NULL || (told->deleted != 0) == reader->exists, "deleted");
    if (told == NULL || !reader->exists)
        return;
    struct worker gone = { .exists = false };

    memcpy(gone.name, reader->name, sizeof gone.name);
    *reader = gone;
    d->count--;
}

/* ---- what is told ---- */

static void get_turn(struct desk *d, const struct worker *reader)
{
    Holdfast__V1__GetConsumerRequest request = HOLDFAST__V1__GET_CONSUMER_REQUEST__INIT;

    request.consumer = text_lend(reader->name);
    const Holdfast__V1__GetConsumerResponse *told =
        fixture_read(&d->f, METHOD_GET_CONSUMER, &request.base);

    PROMISE(d->sim, (told != NULL) == reader->exists, "%s is told, or not", reader->name);
    if (told != NULL)
        told_check(d, reader, told->consumer, false);
}

static void list_turn(struct desk *d)
{
    Holdfast__V1__ListConsumersRequest request = HOLDFAST__V1__LIST_CONSUMERS_REQUEST__INIT;
    uint32_t at = 0, listed = 0;

    request.page_size = (uint32_t)rsim_between(d->sim, 1, rsim_chance(d->sim, 20) ? 100 : 4);
    do {
        const Holdfast__V1__ListConsumersResponse *told =
            fixture_read(&d->f, METHOD_LIST_CONSUMERS, &request.base);

        PROMISE(d->sim, told != NULL && told->n_consumers <= request.page_size, "no page");
        PROMISE(d->sim, told->next_cursor[0] == '\0' || told->n_consumers == request.page_size,
                "a page that is not full");
        for (size_t i = 0; i < told->n_consumers; i++, at++, listed++) {
            while (at < d->names && !d->readers[at].exists)
                at++;
            PROMISE(d->sim, at < d->names, "%s stands twice, or in another order",
                    told->consumers[i]->name);
            told_check(d, &d->readers[at], told->consumers[i], true);
        }
        request.cursor = keep(d, told->next_cursor);
    } while (request.cursor[0] != '\0');
    PROMISE(d->sim, listed == d->count, "%u are listed of %u", listed, d->count);
}

static void turn(struct desk *d)
{
    struct worker *reader = &d->readers[rsim_between(d->sim, 0, d->names - 1)];
    uint64_t what = rsim_between(d->sim, 0, 99);

    if (what < 25)
        create_turn(d, reader);
    else if (what < 65)
        commit_turn(d, reader);
    else if (what < 72)
        delete_turn(d, reader);
    else if (what < 84)
        get_turn(d, reader);
    else if (what < 94)
        list_turn(d);
    else if (what < 97)
        fixture_restart(&d->f);
    else
        fixture_evict(&d->f, 0);
}

void room_readers(struct rsim *sim)
{
    struct desk *d = arena_zalloc(&sim->arena, sizeof *d);
    bool many = rsim_chance(sim, 15); /* More than a shard takes. */

    d->sim = sim;
    d->names = many ? NAMES : FEW;
    names_make(d);
    fixture_init_shard(&d->f, 0, SHARDS);
    for (uint32_t i = 0; i < (many ? LIMIT : 0); i++)
        create_turn(d, &d->readers[i]);
    for (uint32_t i = 0; i < TURNS; i++) {
        turn(d);
        d->f.now_ms += rsim_between(sim, 1, 500);
    }
    list_turn(d);
    fixture_deinit(&d->f);
}
