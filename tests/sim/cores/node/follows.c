/*
 * How a shard follows what is defined (internal/v1/definition.proto; docs/definitions.md): spans of
 * an etcd's order bring it on; those that come late, doubled or behind a gap change nothing; how
 * far it is never goes back. Once it is at the end it has exactly what that etcd has, also where
 * the etcd was restored and lost some: what it lost is gone. All of it is in force at once, and
 * over restarts.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/definition.pb-c.h"
#include "holdfast/v1/counter.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/rpc/fixture.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define NUMBERS   10u
#define TURNS     60u
#define LATE_MAX  12u
#define SPAN_MAX  4u
#define VALUE_MAX 9007199254740991ll

typedef Holdfast__Internal__V1__Defined given_version;

/* As an etcd has it. */
struct made {
    uint64_t revision, version; /* 0: it has none. */
    int64_t max;
    bool deleted;
};

struct span {
    uint64_t generation, from, to;
    bool last;
    uint32_t count, numbers[NUMBERS];
    struct made made[NUMBERS];
};

struct follower {
    struct rsim *sim;
    struct fixture f;
    uint64_t generation, revision; /* Of the etcd: of its newest version. */
    struct made etcd[NUMBERS];
    uint64_t at[2]; /* Generation and revision that the shard told last. */
    bool whole;     /* The last span of this generation was taken. */
    struct span late[LATE_MAX];
    uint32_t late_count;
};

/* Every other one is a currency, which is never deleted, or a counter. */
static bool is_currency(uint32_t number)
{
    return number % 2 == 0;
}

static char *name_of(struct follower *w, uint32_t number)
{
    return arena_printf(&w->sim->arena, "%c%u", is_currency(number) ? 'c' : 'k', number);
}

/* ---- the etcd ---- */

static void change(struct follower *w)
{
    uint32_t number = (uint32_t)rsim_between(w->sim, 0, NUMBERS - 1);
    struct made *made = &w->etcd[number];

    made->deleted =
        !is_currency(number) && made->version > 0 && !made->deleted && rsim_chance(w->sim, 30);
    made->version++;
    made->max = (int64_t)rsim_between(w->sim, 1, 1000);
    w->revision += rsim_between(w->sim, 1, 3);
    made->revision = w->revision;
}

static uint64_t newest_of(const struct follower *w)
{
    uint64_t newest = 0;

    for (uint32_t i = 0; i < NUMBERS; i++)
        newest = w->etcd[i].revision > newest ? w->etcd[i].revision : newest;
    return newest;
}

/* From a backup: some versions are lost, or some definitions; revisions may begin below. */
static void restore(struct follower *w)
{
    uint64_t below = rsim_between(w->sim, 0, w->revision > 20 ? 20 : 0);

    w->generation++;
    for (uint32_t i = 0; i < NUMBERS; i++) {
        struct made *made = &w->etcd[i];

        if (made->version == 0 || made->revision <= w->revision - below)
            continue;
        *made = (struct made){ 0 }; /* It was made since. */
    }
    w->revision -= below;
    w->whole = false;
}

/* ---- spans ---- */

static int by_revision(const void *a, const void *b)
{
    uint64_t first = ((const struct made *)a)->revision,
             second = ((const struct made *)b)->revision;

    return first < second ? -1 : first > second;
}

/* What the etcd has above `from`, in its order, so many at most. */
static struct span span_make(struct follower *w, uint64_t from, uint32_t most)
{
    struct span span = { .generation = w->generation, .from = from, .to = from };
    struct made due[NUMBERS];
    uint32_t count = 0;

    for (uint32_t i = 0; i < NUMBERS; i++) {
        if (w->etcd[i].revision > from)
            due[count++] = w->etcd[i];
    }
    qsort(due, count, sizeof *due, by_revision);
    for (uint32_t i = 0; i < count && i < most; i++) {
        span.made[span.count] = due[i];
        while (w->etcd[span.numbers[span.count]].revision != due[i].revision)
            span.numbers[span.count]++;
        span.to = due[i].revision;
        span.count++;
    }
    span.last = span.count == count;
    return span;
}

static void send(struct follower *w, const struct span *span)
{
    Holdfast__Internal__V1__DefineRequest request = HOLDFAST__INTERNAL__V1__DEFINE_REQUEST__INIT;
    Holdfast__V1__DefinitionBody bodies[NUMBERS];
    Holdfast__V1__CurrencyBody currencies[NUMBERS];
    Holdfast__V1__CounterBody counters[NUMBERS];
    given_version given[NUMBERS], *list[NUMBERS];

    for (uint32_t i = 0; i < span->count; i++) {
        uint32_t number = span->numbers[i];

        holdfast__internal__v1__defined__init(&given[i]);
        holdfast__v1__definition_body__init(&bodies[i]);
        holdfast__v1__currency_body__init(&currencies[i]);
        holdfast__v1__counter_body__init(&counters[i]);
        currencies[i].max_balance = counters[i].add_max = span->made[i].max;
        counters[i].max_value = VALUE_MAX;
        bodies[i].kind_case = is_currency(number) ? HOLDFAST__V1__DEFINITION_BODY__KIND_CURRENCY
                                                  : HOLDFAST__V1__DEFINITION_BODY__KIND_COUNTER;
        if (is_currency(number))
            bodies[i].currency = &currencies[i];
        else
            bodies[i].counter = &counters[i];
        given[i].number = number + 1;
        given[i].version = span->made[i].version;
        given[i].revision = span->made[i].revision;
        given[i].name = name_of(w, number);
        given[i].deleted = span->made[i].deleted;
        given[i].body = &bodies[i];
        list[i] = &given[i];
    }
    request.generation = span->generation;
    request.from_revision = span->from;
    request.to_revision = span->to;
    request.last = span->last;
    request.definitions = list;
    request.n_definitions = span->count;
    const Holdfast__Internal__V1__DefineResponse *told =
        fixture_mutate(&w->f, METHOD_DEFINE, &request.base);

    PROMISE(w->sim, told != NULL, "a span is refused");
    PROMISE(w->sim,
            told->generation > w->at[0] ||
                (told->generation == w->at[0] && told->revision >= w->at[1]),
            "a shard goes back from %" PRIu64 " to %" PRIu64, w->at[1], told->revision);
    w->at[0] = told->generation;
    w->at[1] = told->revision;
}

/* ---- what the shard has ---- */

/* -1: none of that name. */
static int64_t max_of(struct follower *w, uint32_t number)
{
    Holdfast__V1__BatchGetPlayerCountersRequest request =
        HOLDFAST__V1__BATCH_GET_PLAYER_COUNTERS_REQUEST__INIT;
    char *target = text_lend("t");

    if (is_currency(number)) {
        const struct currency *currency = policy_find_currency(&applier_meta(w->f.applier)->policy,
                                                               slice_from_text(name_of(w, number)));
        return currency != NULL ? currency->max_balance : -1;
    }
    request.player_id = text_lend("ann");
    request.counter = name_of(w, number);
    request.target_ids = &target;
    request.n_target_ids = 1;
    return fixture_read(&w->f, METHOD_BATCH_GET_PLAYER_COUNTERS, &request.base) != NULL ? 1 : -1;
}

static void view(struct follower *w, int64_t ret_view[NUMBERS])
{
    for (uint32_t i = 0; i < NUMBERS; i++)
        ret_view[i] = max_of(w, i);
}

static void unchanged_check(struct follower *w, const struct span *span, const char *what)
{
    int64_t before[NUMBERS], after[NUMBERS];
    uint64_t at[] = { w->at[0], w->at[1] };

    view(w, before);
    send(w, span);
    view(w, after);
    PROMISE(w->sim, memcmp(at, w->at, sizeof at) == 0 && memcmp(before, after, sizeof before) == 0,
            "a span %s changes something", what);
    w->sim->counts.spans_ignored++;
}

/* The additions that a counter allows are told by one that is too large. */
static void bound_check(struct follower *w, uint32_t number)
{
    Holdfast__V1__AddToCounterRequest request = HOLDFAST__V1__ADD_TO_COUNTER_REQUEST__INIT;

    request.player_id = text_lend("ann");
    request.op_id = fixture_op_id(&w->f);
    request.authority = text_lend("system:match");
    request.counter = name_of(w, number);
    request.target_id = text_lend("t");
    request.amount = w->etcd[number].max + 1;
    PROMISE(w->sim, fixture_mutate(&w->f, METHOD_ADD_TO_COUNTER, &request.base) == NULL,
            "%s allows more than it was defined with", request.counter);
    request.op_id = fixture_op_id(&w->f);
    request.amount = w->etcd[number].max;
    PROMISE(w->sim, fixture_mutate(&w->f, METHOD_ADD_TO_COUNTER, &request.base) != NULL,
            "%s allows less than it was defined with", request.counter);
}

/* At the end: exactly what the etcd has. */
static void whole_check(struct follower *w)
{
    Holdfast__Internal__V1__GetDefinedRequest request =
        HOLDFAST__INTERNAL__V1__GET_DEFINED_REQUEST__INIT;
    uint32_t standing = 0;

    for (uint32_t i = 0; i < NUMBERS; i++) {
        const struct made *made = &w->etcd[i];
        bool stands = made->version > 0 && !made->deleted;
        int64_t max = max_of(w, i);

        standing += stands;
        PROMISE(w->sim, (max >= 0) == stands, "%s %s in the shard", name_of(w, i),
                stands ? "is not" : "still is");
        PROMISE(w->sim, !stands || !is_currency(i) || max == made->max,
                "%s holds at most %" PRId64 ", not %" PRId64, name_of(w, i), max, made->max);
        if (stands && !is_currency(i))
            bound_check(w, i);
    }
    const Holdfast__Internal__V1__GetDefinedResponse *told =
        fixture_read(&w->f, METHOD_GET_DEFINED, &request.base);

    PROMISE(w->sim,
            told != NULL && told->generation == w->generation && told->revision == newest_of(w) &&
                told->count == standing,
            "a shard tells %" PRIu64 " definitions at %" PRIu64, (uint64_t)told->count,
            (uint64_t)told->revision);
    w->sim->counts.shards_followed++;
}

/* ---- turns ---- */

static bool is_at_end(const struct follower *w)
{
    return w->whole && w->at[0] == w->generation && w->at[1] == newest_of(w);
}

/* Where the shard stands, or a little before. */
static void next_turn(struct follower *w)
{
    uint64_t from = w->at[0] == w->generation ? w->at[1] : 0;

    if (from > 0 && rsim_chance(w->sim, 30))
        from = rsim_between(w->sim, 0, from);
    struct span span = span_make(w, from, (uint32_t)rsim_between(w->sim, 1, SPAN_MAX));

    if (newest_of(w) == 0)
        return;
    send(w, &span);
    w->whole |= span.last && w->at[1] == newest_of(w) && w->at[0] == w->generation;
    w->late[w->late_count++ % LATE_MAX] = span;
}

/* One of before, be it of an etcd that is no more. */
static void late_turn(struct follower *w)
{
    uint32_t count = w->late_count < LATE_MAX ? w->late_count : LATE_MAX;

    if (count == 0)
        return;
    const struct span *span = &w->late[rsim_between(w->sim, 0, count - 1)];

    if (span->generation < w->at[0] || (span->generation == w->at[0] && span->to < w->at[1]))
        unchanged_check(w, span, "that comes late");
    else if (is_at_end(w))
        unchanged_check(w, span, "that comes again");
}

static void gap_turn(struct follower *w)
{
    uint64_t stands = w->at[0] == w->generation ? w->at[1] : 0;
    uint64_t newest = newest_of(w);

    if (newest < stands + 2)
        return;
    struct span span = span_make(w, rsim_between(w->sim, stands + 1, newest - 1), SPAN_MAX);

    unchanged_check(w, &span, "behind a gap");
}

static void turn(struct follower *w)
{
    uint64_t what = rsim_between(w->sim, 0, 99);

    if (what < 35)
        change(w);
    else if (what < 65)
        next_turn(w);
    else if (what < 78)
        late_turn(w);
    else if (what < 86)
        gap_turn(w);
    else if (what < 89)
        restore(w);
    else if (what < 94)
        fixture_restart(&w->f);
    else
        fixture_evict(&w->f, 0);
    if (is_at_end(w))
        whole_check(w);
}

void room_follows(struct rsim *sim)
{
    struct follower *w = arena_zalloc(&sim->arena, sizeof *w);

    w->sim = sim;
    w->generation = 1;
    fixture_init_shard(&w->f, 0, 1);
    for (uint32_t i = 0; i < TURNS; i++) {
        turn(w);
        w->f.now_ms += 10;
    }
    change(w);
    for (uint32_t i = 0; i < 40 && !is_at_end(w); i++)
        next_turn(w);
    PROMISE(sim, is_at_end(w), "a shard never comes to the end");
    whole_check(w);
    fixture_deinit(&w->f);
}
