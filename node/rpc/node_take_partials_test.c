/* Totals: what PullPartials tells, TakePartials logs, ForgetPartials removes, and GetShardTop and
 * GetPulled tell of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/core/top/top.h"
#include "node/rpc/fixture_edges.h"
#include "node/rpc/fixture_shards.h"

#define COLLECTION 7u
#define HOME       2u
#define HOURS(n)   ((uint64_t)(n)*HOUR_MS)

typedef Holdfast__Internal__V1__TakePartialsRequest take_request;
typedef Holdfast__Internal__V1__TakePartialsResponse take_response;
typedef Holdfast__Internal__V1__GetShardTopResponse top_response;

static int setup(void **state)
{
    struct fixture_shards *s = calloc(1, sizeof *s);

    fixture_shards_init(s);
    for (uint32_t i = 0; i < FIXTURE_SHARDS; i++) {
        fixture_define_favorites(&s->shards[i]);
        s->shards[i].now_ms = FIXTURE_START_MS - FIXTURE_START_MS % HOUR_MS + HOURS(2);
    }
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct fixture_shards *s = *state;

    for (uint32_t i = 0; i < FIXTURE_SHARDS; i++)
        fixture_check_edges(&s->shards[i]);
    fixture_shards_deinit(s);
    free(s);
    return 0;
}

#define TOP_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* A target whose home is HOME: the stem and a number. */
static char *target(const char *stem)
{
    static char names[16][16];
    static uint32_t next;
    char *name = names[next++ % 16];

    for (uint32_t i = 0;; i++) {
        snprintf(name, sizeof names[0], "%s%u", stem, i);
        if (target_home(COLLECTION, slice_from_text(name), FIXTURE_SHARDS) == HOME)
            return name;
    }
}

static void pass(struct fixture_shards *s, uint64_t ms)
{
    for (uint32_t i = 0; i < FIXTURE_SHARDS; i++)
        s->shards[i].now_ms += ms;
}

/* Player number `n` of a shard. */
static void edge(struct fixture_shards *s, uint32_t shard, uint32_t n, const char *name, bool gone)
{
    char stem[8], player[16];

    snprintf(stem, sizeof stem, "p%ux", n);
    fixture_name_on(shard, stem, player);
    assert_non_null(
        fixture_edge(&s->shards[shard],
                     &(struct fixture_edge){ .player = player, .target = name, .gone = gone }));
}

/* Players 0 to `count` - 1. */
static void edges(struct fixture_shards *s, uint32_t shard, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        edge(s, shard, i, name, false);
}

static struct source_dot logged(struct fixture_shards *s, uint32_t source)
{
    Holdfast__Internal__V1__GetPulledRequest request =
        HOLDFAST__INTERNAL__V1__GET_PULLED_REQUEST__INIT;
    struct pull_home home;

    request.shard = HOME;
    const Holdfast__Internal__V1__GetPulledResponse *response =
        fixture_read(&s->shards[HOME], METHOD_GET_PULLED, &request.base);
    assert_non_null(response);
    struct reader reader =
        reader_from((struct slice){ response->sources.data, response->sources.len });
    while (pull_home_next(&reader, &home)) {
        if (home.home == source)
            return home.after;
    }
    assert_false(reader.bad);
    return (struct source_dot){ 0 };
}

/* What a source tells HOME, copied; the caller frees `items`. */
struct pulled {
    uint32_t source;
    struct source_dot after, to;
    struct buf items;
    bool more, emptied;
};

static struct pulled pull_after(struct fixture_shards *s, uint32_t source, struct source_dot after)
{
    Holdfast__Internal__V1__PullPartialsRequest request =
        HOLDFAST__INTERNAL__V1__PULL_PARTIALS_REQUEST__INIT;
    struct pulled pulled = { .source = source, .after = after };
    const struct pull_home home = { HOME, after };
    struct buf homes = { 0 };
    struct pull_part part;

    pull_home_encode(&home, &homes);
    request.shard = source;
    request.homes = (ProtobufCBinaryData){ homes.size, homes.data };
    const Holdfast__Internal__V1__PullPartialsResponse *response =
        fixture_read(&s->shards[source], METHOD_PULL_PARTIALS, &request.base);
    buf_deinit(&homes);
    assert_non_null(response);
    assert_int_equal(response->at_ms, s->shards[source].now_ms);
    struct reader reader = reader_from((struct slice){ response->parts.data, response->parts.len });
    assert_true(pull_part_next(&reader, &part));
    assert_int_equal(part.home, HOME);
    pulled.to = part.to;
    pulled.more = part.more;
    pulled.emptied = part.emptied;
    buf_append(&pulled.items, part.items.data, part.items.size);
    return pulled;
}

static struct pulled pull(struct fixture_shards *s, uint32_t source)
{
    return pull_after(s, source, logged(s, source));
}

static const take_response *take(struct fixture_shards *s, const struct pulled *pulled)
{
    Holdfast__Internal__V1__PulledPart part = HOLDFAST__INTERNAL__V1__PULLED_PART__INIT;
    take_request request = HOLDFAST__INTERNAL__V1__TAKE_PARTIALS_REQUEST__INIT;
    Holdfast__Internal__V1__PulledPart *parts[] = { &part };

    part.source = pulled->source;
    part.after_epoch = pulled->after.epoch;
    part.after_counter = pulled->after.counter;
    part.to_epoch = pulled->to.epoch;
    part.to_counter = pulled->to.counter;
    part.items = (ProtobufCBinaryData){ pulled->items.size, pulled->items.data };
    request.shard = HOME;
    request.parts = parts;
    request.n_parts = 1;
    return fixture_mutate(&s->shards[HOME], METHOD_TAKE_PARTIALS, &request.base);
}

static void pull_all(struct fixture_shards *s)
{
    for (uint32_t source = 0; source < FIXTURE_SHARDS; source++) {
        struct pulled pulled = pull(s, source);
        const take_response *response = take(s, &pulled);
        assert_non_null(response);
        assert_int_equal(response->gaps + response->known, 0);
        buf_deinit(&pulled.items);
    }
}

static const top_response *top(struct fixture_shards *s, Holdfast__V1__TopWindow window,
                               uint32_t limit)
{
    Holdfast__Internal__V1__GetShardTopRequest request =
        HOLDFAST__INTERNAL__V1__GET_SHARD_TOP_REQUEST__INIT;

    request.shard = HOME;
    request.collection = text_lend("");
    request.window = window;
    request.limit = limit;
    return fixture_read(&s->shards[HOME], METHOD_GET_SHARD_TOP, &request.base);
}

#define DAY  HOLDFAST__V1__TOP_WINDOW__TOP_WINDOW_24H
#define WEEK HOLDFAST__V1__TOP_WINDOW__TOP_WINDOW_7D
#define ALL  HOLDFAST__V1__TOP_WINDOW__TOP_WINDOW_ALL

/* How much a target has in a window; 0: it is not listed. */
static uint64_t count_of(struct fixture_shards *s, Holdfast__V1__TopWindow window, const char *name)
{
    const top_response *response = top(s, window, TOP_LIMIT_MAX);

    assert_non_null(response);
    for (size_t i = 0; i < response->n_entries; i++) {
        if (strcmp(response->entries[i]->target_id, name) == 0)
            return response->entries[i]->count;
    }
    return 0;
}

static void a_total_is_the_sum_of_what_all_shards_say(void **state)
{
    struct fixture_shards *s = *state;
    const char *pong = target("pong"), *zork = target("zork");

    for (uint32_t i = 0; i < FIXTURE_SHARDS; i++)
        edges(s, i, i + 1, pong);
    edges(s, 1, 3, zork);
    assert_int_equal(count_of(s, ALL, pong), 0); /* Nothing was pulled. */
    pull_all(s);
    const top_response *response = top(s, ALL, 10);
    assert_int_equal(response->n_entries, 2);
    assert_string_equal(response->entries[0]->target_id, pong);
    assert_int_equal(response->entries[0]->count, 10);
    assert_string_equal(response->entries[1]->target_id, zork);
    assert_int_equal(response->entries[1]->count, 3);
    assert_int_equal(response->collection_number, COLLECTION);
    assert_int_equal(response->at_ms, s->shards[HOME].now_ms);
    edge(s, 3, 0, pong, true);
    edge(s, 3, 1, pong, true);
    edge(s, 1, 0, zork, true);
    edge(s, 1, 1, zork, true);
    edge(s, 1, 2, zork, true);
    assert_int_equal(count_of(s, ALL, pong), 10);
    pull_all(s);
    assert_int_equal(count_of(s, ALL, pong), 8);
    assert_int_equal(count_of(s, ALL, zork), 0);
    fixture_restart(&s->shards[HOME]);
    assert_int_equal(count_of(s, ALL, pong), 8);
    assert_int_equal(count_of(s, DAY, pong), 8);
    edge(s, 1, 0, zork, false); /* From nothing again. */
    pull_all(s);
    assert_int_equal(count_of(s, WEEK, zork), 1);
}

static void what_was_logged_once_changes_nothing_again(void **state)
{
    struct fixture_shards *s = *state;
    const char *pong = target("pong");

    edges(s, 1, 3, pong);
    struct pulled first = pull(s, 1);
    assert_int_equal(take(s, &first)->taken, 1);
    edge(s, 1, 0, pong, true);
    edge(s, 1, 1, pong, true);
    struct pulled second = pull(s, 1);
    assert_int_equal(take(s, &second)->taken, 1);
    assert_int_equal(count_of(s, ALL, pong), 1);
    const take_response *response = take(s, &first); /* It was late. */
    assert_int_equal(response->taken, 0);
    assert_int_equal(response->known, 1);
    assert_int_equal(take(s, &second)->known, 1);
    assert_int_equal(count_of(s, ALL, pong), 1);
    assert_int_equal(count_of(s, DAY, pong), 1);
    buf_deinit(&first.items);
    buf_deinit(&second.items);
}

/* New owners of both go on with dots of a higher epoch. */
static void a_failover_counts_nothing_twice(void **state)
{
    struct fixture_shards *s = *state;
    const char *pong = target("pong");

    edges(s, 1, 3, pong);
    struct pulled first = pull(s, 1);
    assert_int_equal(take(s, &first)->taken, 1);
    fixture_next_epoch(&s->shards[1]);
    fixture_next_epoch(&s->shards[HOME]);
    edge(s, 1, 3, pong, false);
    pull_all(s);
    assert_int_equal(count_of(s, ALL, pong), 4);
    assert_int_equal(take(s, &first)->known, 1);
    assert_int_equal(count_of(s, ALL, pong), 4);
    buf_deinit(&first.items);
    struct pulled whole = pull_after(s, 1, (struct source_dot){ 0 });
    assert_int_equal(take(s, &whole)->known, 1);
    assert_int_equal(count_of(s, ALL, pong), 4);
    buf_deinit(&whole.items);
}

static void a_part_behind_a_gap_is_left_out(void **state)
{
    struct fixture_shards *s = *state;
    const char *pong = target("pong"), *zork = target("zork");

    edges(s, 1, 1, pong);
    struct pulled first = pull(s, 1);
    edges(s, 1, 1, zork);
    struct pulled second = pull_after(s, 1, first.to);
    const take_response *response = take(s, &second);
    assert_int_equal(response->gaps, 1);
    assert_int_equal(response->taken, 0);
    assert_int_equal(logged(s, 1).epoch, 0);
    assert_int_equal(take(s, &first)->taken, 1);
    assert_int_equal(take(s, &second)->taken, 1);
    assert_int_equal(count_of(s, ALL, pong) + count_of(s, ALL, zork), 2);
    buf_deinit(&first.items);
    buf_deinit(&second.items);
}

/* However long after it is pulled, and whatever the home's clock says. */
static void an_edge_counts_in_the_hour_in_which_it_was_made(void **state)
{
    struct fixture_shards *s = *state;
    const char *pong = target("pong");

    edges(s, 1, 2, pong);
    pass(s, HOURS(20));
    edges(s, 0, 3, pong);
    pull_all(s);
    assert_int_equal(count_of(s, DAY, pong), 5);
    pass(s, HOURS(3));
    assert_int_equal(count_of(s, DAY, pong), 5);
    pass(s, HOURS(1));
    assert_int_equal(count_of(s, DAY, pong), 3); /* No entry said so: time did. */
    assert_int_equal(count_of(s, WEEK, pong), 5);
    pass(s, HOURS(168 - 25));
    assert_int_equal(count_of(s, DAY, pong), 0);
    assert_int_equal(count_of(s, WEEK, pong), 5);
    pass(s, HOURS(1));
    assert_int_equal(count_of(s, WEEK, pong), 3);
    assert_int_equal(count_of(s, ALL, pong), 5);
}

static void an_edge_that_goes_is_taken_from_the_hour_in_which_it_was_made(void **state)
{
    struct fixture_shards *s = *state;
    const char *pong = target("pong");

    edges(s, 1, 2, pong);
    pass(s, HOURS(30));
    edges(s, 0, 2, pong);
    edge(s, 1, 2, pong, false);
    edge(s, 1, 0, pong, true); /* Of 30 hours before. */
    pull_all(s);
    assert_int_equal(count_of(s, DAY, pong), 3);
    assert_int_equal(count_of(s, WEEK, pong), 4);
    pass(s, HOURS(140));
    edge(s, 1, 1, pong, true); /* Its hour is not kept any more. */
    edge(s, 0, 0, pong, true);
    edge(s, 0, 1, pong, true);
    pull_all(s);
    assert_int_equal(count_of(s, DAY, pong), 0);
    assert_int_equal(count_of(s, WEEK, pong), 1);
    assert_int_equal(count_of(s, ALL, pong), 1);
}

/* Places in a list are bounds that time lowers; the list is exact all the same. */
static void a_list_is_exact_while_its_places_are_old(void **state)
{
    struct fixture_shards *s = *state;
    const char *old = target("old"), *mid = target("mid"), *young = target("young");

    edges(s, 0, 6, old);
    pass(s, HOURS(10));
    edges(s, 1, 4, mid);
    edge(s, 0, 6, old, false);
    pass(s, HOURS(10));
    edges(s, 2, 2, young);
    pull_all(s);
    pass(s, HOURS(5));
    const top_response *response = top(s, DAY, 2); /* Their places: 7, 4 and 2. */
    assert_int_equal(response->n_entries, 2);
    assert_string_equal(response->entries[0]->target_id, mid);
    assert_string_equal(response->entries[1]->target_id, young);
    response = top(s, DAY, 1000);
    assert_int_equal(response->n_entries, 3);
    assert_string_equal(response->entries[2]->target_id, old);
    assert_int_equal(response->entries[2]->count, 1);
    edges(s, 3, 5, old); /* And back to the head. */
    pull_all(s);
    response = top(s, DAY, 1);
    assert_string_equal(response->entries[0]->target_id, old);
    assert_int_equal(response->entries[0]->count, 6);
}

static void targets_of_one_count_come_by_name(void **state)
{
    struct fixture_shards *s = *state;
    const char *names[] = { target("a"), target("b"), target("c"), target("d") };

    for (uint32_t i = 4; i > 0; i--)
        edges(s, i % FIXTURE_SHARDS, 2, names[i - 1]);
    pull_all(s);
    for (uint32_t limit = 1; limit <= 4; limit++) {
        const top_response *response = top(s, WEEK, limit);
        assert_int_equal(response->n_entries, limit);
        for (uint32_t i = 0; i < limit; i++)
            assert_string_equal(response->entries[i]->target_id, names[i]);
    }
}

static uint32_t places(struct fixture *f, char window)
{
    uint32_t count = 0;

    fixture_checkpoint(f);
    for (uint32_t i = 0; i < f->row_count; i++) {
        const struct buf *key = &f->rows[i].key;
        count += key->data[0] == TABLE_RANK && (char)key->data[9] == window;
    }
    return count;
}

static void a_sweep_takes_away_places_that_time_has_ended(void **state)
{
    struct fixture_shards *s = *state;
    take_request request = HOLDFAST__INTERNAL__V1__TAKE_PARTIALS_REQUEST__INIT;
    char stem[2] = "a";
    uint32_t rounds = 0;

    for (; stem[0] <= 'e'; stem[0]++)
        edges(s, 0, 1, target(stem));
    pull_all(s);
    pass(s, HOURS(25));
    assert_int_equal(places(&s->shards[HOME], TOP_DAY), 5);
    request.shard = HOME;
    request.sweep = 2;
    do {
        const take_response *response =
            fixture_mutate(&s->shards[HOME], METHOD_TAKE_PARTIALS, &request.base);
        assert_non_null(response);
        request.sweep_after.len = response->swept.len;
        free(request.sweep_after.data);
        request.sweep_after.data = malloc(response->swept.len + 1);
        if (response->swept.len > 0)
            memcpy(request.sweep_after.data, response->swept.data, response->swept.len);
        rounds++;
    } while (request.sweep_after.len > 0);
    free(request.sweep_after.data);
    assert_int_equal(rounds, 3);
    assert_int_equal(places(&s->shards[HOME], TOP_DAY), 0);
    assert_int_equal(places(&s->shards[HOME], TOP_WEEK), 5);
    assert_int_equal(places(&s->shards[HOME], TOP_ALL), 5);
}

static void what_a_home_cannot_log_is_refused(void **state)
{
    struct fixture_shards *s = *state;
    struct fixture *home = &s->shards[HOME];
    const char *pong = target("pong");

    edges(s, 1, 1, pong);
    struct pulled pulled = pull(s, 1);
    pulled.source = FIXTURE_SHARDS;
    assert_null(take(s, &pulled));
    assert_string_equal(home->error->field, "parts[0]");
    assert_string_equal(home->error->value, "4");
    pulled.source = 1;
    pulled.items.size--;
    assert_null(take(s, &pulled));
    assert_int_equal(home->error->code, ERROR(INVALID_ARGUMENT));
    pulled.items.size++;
    struct pull_item foreign = { { 1, 9 }, COLLECTION, slice_from_text("xxxxxxxx"), 1, { 0 } };
    while (target_home(COLLECTION, foreign.target, FIXTURE_SHARDS) == HOME)
        foreign.target.size--;
    assert_int_not_equal(foreign.target.size, 0);
    pull_item_encode(&foreign, &pulled.items);
    assert_null(take(s, &pulled));
    assert_string_equal(home->error->limit,
                        "items as PullPartials gives them, of this shard's targets");
    assert_false(home->recorded);
    buf_deinit(&pulled.items);
    assert_null(top(s, ALL, 0));
    assert_string_equal(home->error->value, "0");
    assert_null(top(s, ALL, 1001));
    assert_string_equal(home->error->limit, "1 to 1000");
    assert_int_equal(count_of(s, ALL, pong), 0);
}

/* More than one answer holds: the next one goes on behind it. */
static void a_long_pull_goes_on_where_it_stood(void **state)
{
    struct fixture_shards *s = *state;
    char player[16], name[16];
    uint32_t made = 0, answers = 0;

    fixture_define_haste(&s->shards[1]);
    fixture_name_on(1, "ann", player);
    for (uint32_t i = 0; made < 600; i++) {
        snprintf(name, sizeof name, "t%u", i);
        if (target_home(COLLECTION, slice_from_text(name), FIXTURE_SHARDS) != HOME)
            continue;
        assert_non_null(fixture_favorite(&s->shards[1], player, name));
        made++;
    }
    for (bool more = true; more; answers++) {
        struct pulled pulled = pull(s, 1);
        more = pulled.more;
        assert_non_null(take(s, &pulled));
        buf_deinit(&pulled.items);
    }
    assert_in_range(answers, 3, 6);
    assert_int_equal(top(s, ALL, TOP_LIMIT_MAX)->n_entries, 600);
    fixture_restart(&s->shards[HOME]);
    uint64_t *rounds = &s->shards[HOME].need_rounds;
    uint64_t before = *rounds;
    assert_int_equal(top(s, DAY, 599)->n_entries, 599);
    uint64_t long_rounds = *rounds - before;
    fixture_restart(&s->shards[HOME]);
    before = *rounds;
    assert_int_equal(top(s, DAY, 10)->n_entries,
                     10); /* All 600 have one edge: ten are looked for. */
    assert_true(2 * (*rounds - before) < long_rounds);
}

/* ---- forgetting ---- */
typedef Holdfast__Internal__V1__ForgetPartialsRequest forget_request;
typedef Holdfast__Internal__V1__ForgetPartialsResponse forget_response;

/* What HOME has logged of the source up to there; NULL: refused. */
static const forget_response *forget(struct fixture_shards *s, uint32_t source,
                                     struct source_dot upto, uint32_t homes)
{
    forget_request request = HOLDFAST__INTERNAL__V1__FORGET_PARTIALS_REQUEST__INIT;
    const struct pull_home home = { HOME, upto };
    struct buf bytes = { 0 };

    for (uint32_t i = 0; i < homes; i++)
        pull_home_encode(&home, &bytes);
    request.shard = source;
    request.homes = (ProtobufCBinaryData){ bytes.size, bytes.data };
    const forget_response *response =
        fixture_mutate(&s->shards[source], METHOD_FORGET_PARTIALS, &request.base);
    buf_deinit(&bytes);
    return response;
}

static uint32_t forgotten(struct fixture_shards *s, uint32_t source)
{
    const forget_response *response = forget(s, source, logged(s, source), 1);

    assert_non_null(response);
    return response->forgotten;
}

/* Rows of totals or of partial counts, of any shard, that name the target. */
static uint32_t rows_of(struct fixture_shards *s, const char *name)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < FIXTURE_SHARDS; i++) {
        struct fixture *f = &s->shards[i];
        fixture_checkpoint(f);
        for (uint32_t j = 0; j < f->row_count; j++) {
            const struct buf *key = &f->rows[j].key;
            count += memchr("PHZSTK", key->data[0], 6) != NULL &&
                     memmem(key->data, key->size, name, strlen(name)) != NULL;
        }
    }
    return count;
}

static bool tells_of_emptied(struct fixture_shards *s, uint32_t source)
{
    struct pulled pulled = pull(s, source);
    bool emptied = pulled.emptied;

    buf_deinit(&pulled.items);
    return emptied;
}

static void nothing_is_left_of_a_target_without_edges(void **state)
{
    struct fixture_shards *s = *state;
    const char *pong = target("pong"), *zork = target("zork");

    edges(s, 1, 2, pong);
    edges(s, 1, 1, zork);
    struct pulled first = pull(s, 1);
    assert_int_equal(take(s, &first)->taken, 2);
    edge(s, 1, 0, pong, true);
    edge(s, 1, 1, pong, true);
    assert_false(tells_of_emptied(s, 1)); /* Home has not logged that. */
    assert_int_equal(forgotten(s, 1), 0);
    assert_int_equal(count_of(s, ALL, pong), 2);
    pull_all(s);
    assert_int_equal(count_of(s, ALL, pong), 0);
    assert_int_equal(rows_of(s, pong), 3);
    assert_true(tells_of_emptied(s, 1));
    assert_int_equal(forgotten(s, 1), 1);
    assert_int_equal(rows_of(s, pong), 0);
    assert_false(tells_of_emptied(s, 1));
    assert_int_equal(forgotten(s, 1), 0);
    fixture_restart_all(s);
    assert_int_equal(take(s, &first)->known, 2); /* It was late. */
    assert_int_equal(rows_of(s, pong), 0);
    assert_int_equal(count_of(s, ALL, zork), 1);
    buf_deinit(&first.items);
}

static void a_target_that_has_edges_again_is_counted(void **state)
{
    struct fixture_shards *s = *state;
    const char *pong = target("pong");

    edges(s, 1, 1, pong);
    edge(s, 1, 0, pong, true);
    pull_all(s);
    struct source_dot gone = logged(s, 1);
    edge(s, 1, 5, pong, false);
    assert_int_equal(forget(s, 1, gone, 1)->forgotten, 0); /* It was asked for before. */
    pull_all(s);
    assert_int_equal(count_of(s, ALL, pong), 1);
    edge(s, 1, 5, pong, true);
    pull_all(s);
    assert_int_equal(forgotten(s, 1), 1);
    edge(s, 1, 0, pong, false); /* From nothing at all. */
    edge(s, 1, 1, pong, false);
    pull_all(s);
    assert_int_equal(count_of(s, DAY, pong), 2);
    assert_int_equal(forget(s, 1, gone, 1)->forgotten, 0); /* A late copy. */
    assert_int_equal(fixture_partial(&s->shards[1], "", pong), 2);
}

/* A player who favourites and unfavourites ever new targets leaves no row of them behind. */
static void many_targets_are_forgotten_a_part_at_a_time(void **state)
{
    struct fixture_shards *s = *state;
    char player[16], name[16];
    uint32_t made = 0;

    fixture_define_haste(&s->shards[1]);
    fixture_name_on(1, "ann", player);
    for (uint32_t i = 0; made < FORGET_TARGETS_MAX + 88; i++) {
        snprintf(name, sizeof name, "many%u", i);
        if (target_home(COLLECTION, slice_from_text(name), FIXTURE_SHARDS) != HOME)
            continue;
        assert_non_null(fixture_favorite(&s->shards[1], player, name));
        assert_non_null(fixture_unfavorite(&s->shards[1], player, name));
        made++;
    }
    for (bool more = true; more;) {
        struct pulled pulled = pull(s, 1);
        more = pulled.more;
        assert_non_null(take(s, &pulled));
        buf_deinit(&pulled.items);
    }
    fixture_evict(&s->shards[1], 0);
    const forget_response *response = forget(s, 1, logged(s, 1), 1);
    assert_int_equal(response->forgotten, FORGET_TARGETS_MAX);
    assert_true(response->more);
    response = forget(s, 1, logged(s, 1), 1);
    assert_int_equal(response->forgotten, 88);
    assert_false(response->more);
    assert_int_equal(rows_of(s, "many"), 0);
}

static void what_cannot_be_forgotten_is_refused(void **state)
{
    struct fixture_shards *s = *state;
    struct fixture *source = &s->shards[1];
    forget_request request = HOLDFAST__INTERNAL__V1__FORGET_PARTIALS_REQUEST__INIT;
    uint8_t nonsense[PULL_HOME_BYTES] = { FIXTURE_SHARDS };

    assert_non_null(forget(s, 1, logged(s, 1), FORGET_HOMES_MAX));
    assert_null(forget(s, 1, logged(s, 1), FORGET_HOMES_MAX + 1));
    assert_string_equal(source->error->field, "homes");
    assert_string_equal(source->error->limit, "at most 8");
    assert_string_equal(source->error->value, "9");
    request.shard = 1;
    request.homes = (ProtobufCBinaryData){ sizeof nonsense, nonsense };
    assert_null(fixture_mutate(source, METHOD_FORGET_PARTIALS, &request.base));
    assert_string_equal(source->error->limit, "homes as PullPartials takes them");
    nonsense[0] = 0;
    request.homes.len--;
    assert_null(fixture_mutate(source, METHOD_FORGET_PARTIALS, &request.base));
    assert_false(source->recorded);
}

/* Puts the byte in the place of every row of the table in a shard. */
static void spoil(struct fixture *f, enum table table)
{
    struct state *rows = applier_state(f->applier);
    const uint8_t nonsense = 0;

    fixture_checkpoint(f);
    for (uint32_t i = 0; i < f->row_count; i++) {
        struct slice key = buf_slice(&f->rows[i].key), row = buf_slice(&f->rows[i].value);
        if (key.data[0] != (uint8_t)table)
            continue;
        (void)state_load(rows, state_load_generation(rows), key, &row);
        state_begin(rows);
        state_put(rows, key, (struct slice){ &nonsense, 1 });
        state_commit(rows);
    }
}

static void repair(struct fixture *f, enum table table)
{
    fixture_checkpoint(f);
    for (uint32_t i = f->row_count; i > 0; i--) {
        Holdfast__V1__RepairRowRequest request = HOLDFAST__V1__REPAIR_ROW_REQUEST__INIT;
        char hex[2 * STATE_KEY_BYTES_MAX + 1];
        const struct buf *key = &f->rows[i - 1].key;
        if (key->data[0] != (uint8_t)table)
            continue;
        for (size_t at = 0; at < key->size; at++)
            snprintf(hex + 2 * at, 3, "%02x", key->data[at]);
        request.shard = f->shard;
        request.key = hex;
        request.reason = text_lend("spoilt");
        if (fixture_mutate(f, METHOD_REPAIR_ROW, &request.base) == NULL)
            fail_msg("%s", f->error->message);
    }
}

/* What a source tells while a total cannot be read is in the total that is added up again. */
static void a_total_that_was_unreadable_misses_nothing(void **state)
{
    struct fixture_shards *s = *state;
    const char *pong = target("pong");

    edges(s, 0, 2, pong);
    edges(s, 1, 1, pong);
    pull_all(s);
    spoil(&s->shards[HOME], TABLE_TALLY);
    edge(s, 1, 0, pong, true);
    edge(s, 0, 2, pong, false);
    edge(s, 0, 3, pong, false);
    for (uint32_t source = 0; source < 2; source++) {
        struct pulled pulled = pull(s, source);
        assert_non_null(take(s, &pulled));
        buf_deinit(&pulled.items);
    }
    assert_int_equal(forgotten(s, 1), 1);
    repair(&s->shards[HOME], TABLE_TALLY);
    assert_int_equal(count_of(s, ALL, pong), 4);
}

/* Its key says what changed: a home that pulls past it misses nothing. */
static void a_note_that_is_unreadable_hides_no_change(void **state)
{
    struct fixture_shards *s = *state;
    const char *pong = target("pong"), *chess = target("chess");

    edges(s, 1, 2, pong);
    spoil(&s->shards[1], TABLE_CHANGED);
    edges(s, 1, 1, chess);
    pull_all(s);
    assert_non_null(applier_take_damage(s->shards[1].applier));
    assert_int_equal(count_of(s, ALL, pong), 2);
    assert_int_equal(count_of(s, ALL, chess), 1);
}

/* The repair of a count names another entry; what was noted of it before says nothing. */
static void a_count_that_is_repaired_is_not_forgotten(void **state)
{
    struct fixture_shards *s = *state;
    const char *pong = target("pong");

    edges(s, 1, 1, pong);
    edge(s, 1, 0, pong, true);
    pull_all(s);
    spoil(&s->shards[1], TABLE_PARTIAL);
    assert_int_equal(forgotten(s, 1), 1); /* It is left to its repair. */
    assert_int_equal(rows_of(s, pong), 1);
    repair(&s->shards[1], TABLE_PARTIAL);
    pull_all(s);
    assert_int_equal(forgotten(s, 1), 1);
    assert_int_equal(rows_of(s, pong), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TOP_TEST(a_total_is_the_sum_of_what_all_shards_say),
        TOP_TEST(what_was_logged_once_changes_nothing_again),
        TOP_TEST(a_failover_counts_nothing_twice),
        TOP_TEST(a_part_behind_a_gap_is_left_out),
        TOP_TEST(an_edge_counts_in_the_hour_in_which_it_was_made),
        TOP_TEST(an_edge_that_goes_is_taken_from_the_hour_in_which_it_was_made),
        TOP_TEST(a_list_is_exact_while_its_places_are_old),
        TOP_TEST(targets_of_one_count_come_by_name),
        TOP_TEST(a_sweep_takes_away_places_that_time_has_ended),
        TOP_TEST(what_a_home_cannot_log_is_refused),
        TOP_TEST(a_long_pull_goes_on_where_it_stood),
        TOP_TEST(nothing_is_left_of_a_target_without_edges),
        TOP_TEST(a_target_that_has_edges_again_is_counted),
        TOP_TEST(many_targets_are_forgotten_a_part_at_a_time),
        TOP_TEST(what_cannot_be_forgotten_is_refused),
        TOP_TEST(a_total_that_was_unreadable_misses_nothing),
        TOP_TEST(a_note_that_is_unreadable_hides_no_change),
        TOP_TEST(a_count_that_is_repaired_is_not_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
