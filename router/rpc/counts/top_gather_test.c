/* GetTop over shards of the test's making. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/top.pb-c.h"
#include "holdfast/v1/favorites.pb-c.h"
#include "idl/error_code.h"
#include "router/rpc/fake/plain_router.h"
#include "router/rpc/counts/top_gather.h"
#include "runtime/base/check.h"

#define SHARDS   4u
#define ASKS_MAX 160u
#define NOW_MS   50000

/* One request and what came of it. */
struct one {
    struct plain_ask ask;
    char places[128];
    size_t count;
    int64_t from_ms, to_ms;
    bool stale;
};

struct fixture {
    struct plain_router plain;
    struct one asks[ASKS_MAX];
    unsigned used;
    const char *player; /* Of the token that is sent with what is asked from here on. */
};

static void reply(struct request *request, const ProtobufCMessage *response)
{
    const Holdfast__V1__GetTopResponse *top = (const void *)response;
    struct one *one = request->origin;

    one->ask.answers++;
    one->count = top->n_entries;
    one->from_ms = top->as_of_from_ms;
    one->to_ms = top->as_of_to_ms;
    one->stale = top->stale;
    for (size_t i = 0; i < top->n_entries; i++)
        snprintf(one->places + strlen(one->places), sizeof one->places - strlen(one->places),
                 "%s%s %llu", i > 0 ? " " : "", top->entries[i]->target_id,
                 (unsigned long long)top->entries[i]->count);
}

static const struct request_door door = { .reply = reply, .fail = plain_ask_fail };

static int setup(void **state)
{
    static const struct log silent = { .level_min = LOG_ERROR + 1 };
    struct fixture *f = mem_zalloc(sizeof *f);

    plain_router_init(&f->plain, SHARDS,
                      &(struct router_options){ .log = &silent,
                                                .in_flight_max = 200,
                                                .count_age_ms = 50,
                                                .count_memo_bytes = 1u << 16 });
    f->plain.door = &door;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    plain_router_deinit(&f->plain);
    free(f);
    return 0;
}

#define TOP_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

struct wish {
    const char *collection, *window;
    uint32_t limit;   /* 0: absent. */
    uint32_t wait_ms; /* 0: 5000. */
};

static struct one *get(struct fixture *f, const struct wish *wish)
{
    CHECK(f->used < ASKS_MAX);
    struct one *one = &f->asks[f->used++];
    Holdfast__V1__GetTopRequest message = HOLDFAST__V1__GET_TOP_REQUEST__INIT;

    message.collection = text_lend(wish->collection != NULL ? wish->collection : "");
    message.window = text_lend(wish->window != NULL ? wish->window : "");
    if (wish->limit > 0)
        message._limit_case = HOLDFAST__V1__GET_TOP_REQUEST___LIMIT_LIMIT;
    message.limit = wish->limit;
    one->ask.player = f->player;
    plain_router_send(&f->plain, &one->ask, METHOD_GET_TOP, &message.base,
                      wish->wait_ms > 0 ? wish->wait_ms : 5000);
    return one;
}

static struct one *get_all(struct fixture *f)
{
    return get(f, &(struct wish){ .window = "all", .limit = 3 });
}

struct said {
    uint64_t count; /* Of the target that is named after the shard; 0: there is none. */
    uint64_t number;
    int64_t pulled_ms;
};

/* What call `place` is answered with. Checks that it asks for the shard and for so many places. */
static void shard_says(struct fixture *f, uint32_t place, uint32_t limit, const struct said *said)
{
    Holdfast__Internal__V1__GetShardTopResponse answer =
        HOLDFAST__INTERNAL__V1__GET_SHARD_TOP_RESPONSE__INIT;
    Holdfast__V1__TopEntry entry = HOLDFAST__V1__TOP_ENTRY__INIT, *list[] = { &entry };
    struct slice body = f->plain.fake.calls[place].body;
    char name[8];
    uint8_t bytes[256];

    Holdfast__Internal__V1__GetShardTopRequest *asked =
        holdfast__internal__v1__get_shard_top_request__unpack(NULL, body.size, body.data);
    assert_non_null(asked);
    assert_int_equal(asked->shard, place % SHARDS);
    assert_int_equal(asked->limit, limit);
    snprintf(name, sizeof name, "t%u", asked->shard);
    holdfast__internal__v1__get_shard_top_request__free_unpacked(asked, NULL);
    entry.target_id = name;
    entry.count = said->count;
    answer.entries = list;
    answer.n_entries = said->count > 0;
    answer.collection_number = said->number;
    answer.pulled_ms = said->pulled_ms;
    answer.at_ms = NOW_MS + place % SHARDS;
    size_t size = holdfast__internal__v1__get_shard_top_response__pack(&answer, bytes);
    fake_cluster_answer(&f->plain.fake, place, WIRE_OK, (struct slice){ bytes, size });
}

/* All shards of the gather whose first call is `from`: 1, 2, 3 and 4 times `first`. */
static void all_say(struct fixture *f, uint32_t from, uint32_t limit, uint64_t first)
{
    for (uint32_t i = 0; i < SHARDS; i++)
        shard_says(f, from + i, limit,
                   &(struct said){ first * (i + 1), 9, NOW_MS - 1000 + (int64_t)i });
}

static bool pause_over(void *user)
{
    (void)user;
    return false;
}

static void rest(struct fixture *f, uint32_t ms)
{
    (void)loop_run_until(f->plain.loop, pause_over, NULL, ms);
}

static void a_list_is_that_of_all_shards_and_is_kept_for_a_while(void **state)
{
    struct fixture *f = *state;

    struct one *first = get_all(f);
    assert_int_equal(f->plain.fake.call_count, SHARDS);
    all_say(f, 0, 10, 1);
    assert_int_equal(first->ask.answers, 1);
    assert_string_equal(first->places, "t3 4 t2 3 t1 2");
    assert_int_equal(first->from_ms, NOW_MS - 1000);
    assert_int_equal(first->to_ms, NOW_MS + 3);
    assert_false(first->stale);
    struct one *again = get(f, &(struct wish){ .window = "all", .limit = 10 });
    assert_int_equal(again->ask.answers, 1);
    assert_int_equal(again->count, 4); /* Gathered for ten places. */
    assert_int_equal(f->plain.fake.call_count, SHARDS);
    rest(f, TOP_AGE_MAX_MS + 50);
    struct one *later = get_all(f);
    assert_int_equal(f->plain.fake.call_count, 2 * SHARDS);
    all_say(f, SHARDS, 10, 2);
    assert_string_equal(later->places, "t3 8 t2 6 t1 4");
}

/* Whether a list that was so old when it was gathered is gathered again `later_ms` after. */
static bool is_gathered_again(struct fixture *f, int64_t old_ms, uint32_t later_ms)
{
    uint32_t from = f->plain.fake.call_count;

    (void)get_all(f);
    for (uint32_t i = 0; i < SHARDS; i++)
        shard_says(f, from + i, 10, &(struct said){ 1, 9, NOW_MS - old_ms });
    rest(f, later_ms);
    struct one *again = get_all(f);
    if (again->ask.answers == 1)
        return false;
    for (uint32_t i = 0; i < SHARDS; i++)
        shard_says(f, from + SHARDS + i, 10, &(struct said){ 1, 9, NOW_MS - 5000 });
    rest(f, TOP_AGE_MIN_MS + 50); /* The next list is gathered. */
    return true;
}

static void an_older_list_is_told_for_a_shorter_time(void **state)
{
    struct fixture *f = *state;

    assert_true(is_gathered_again(f, 5000, TOP_AGE_MIN_MS + 50));
    assert_true(is_gathered_again(f, 1000, TOP_TELL_MS - 1000 + 50));
    assert_true(is_gathered_again(f, 0, TOP_AGE_MAX_MS + 50));
    assert_false(is_gathered_again(f, 1000, TOP_TELL_MS - 1000 - 250));
    rest(f, 350);
    assert_false(is_gathered_again(f, 0, TOP_TELL_MS - 1000 + 50));
}

static void requests_for_one_list_share_a_gather(void **state)
{
    struct fixture *f = *state;

    struct one *a = get_all(f), *b = get_all(f);
    struct one *day = get(f, &(struct wish){ .window = "24h", .limit = 3 });
    struct one *more = get(f, &(struct wish){ .window = "all" }); /* A hundred. */
    struct one *other = get(f, &(struct wish){ .collection = "likes", .window = "all" });
    assert_int_equal(f->plain.fake.call_count, 4 * SHARDS);
    all_say(f, 0, 10, 1);
    assert_int_equal(a->ask.answers, 1);
    assert_int_equal(b->ask.answers, 1);
    assert_int_equal(day->ask.answers + more->ask.answers + other->ask.answers, 0);
    all_say(f, SHARDS, 10, 1);
    all_say(f, 2 * SHARDS, 100, 1);
    all_say(f, 3 * SHARDS, 100, 1);
    assert_int_equal(day->ask.answers + more->ask.answers + other->ask.answers, 3);
    assert_int_equal(more->count, 4);
}

/* One silent shard ages every list, and the answer says so. */
static void a_silent_shard_makes_what_was_known_stale(void **state)
{
    struct fixture *f = *state;

    struct one *first = get_all(f);
    all_say(f, 0, 10, 1);
    assert_false(first->stale);
    rest(f, TOP_AGE_MAX_MS + 50);
    struct one *stale = get_all(f), *unknown = get(f, &(struct wish){ .window = "7d" });
    for (uint32_t i = 0; i < SHARDS - 1; i++)
        shard_says(f, SHARDS + i, 10, &(struct said){ 9, 9, NOW_MS });
    rest(f, 2100);
    for (uint32_t place = SHARDS; place < f->plain.fake.call_count; place++) {
        if (f->plain.fake.calls[place].open)
            fake_cluster_fail(&f->plain.fake, place, ERR_TIMEOUT);
    }
    rest(f, 50);
    assert_int_equal(stale->ask.answers, 1);
    assert_true(stale->stale);
    assert_string_equal(stale->places, "t3 4 t2 3 t1 2"); /* Nothing of a part of the shards. */
    assert_int_equal(stale->from_ms, NOW_MS - 1000);
    assert_int_equal(unknown->ask.answers, 1);
    assert_true(unknown->ask.code == CODE(UNAVAILABLE) ||
                unknown->ask.code == CODE(DEADLINE_EXCEEDED));
}

/* Every shard answers, and one has not been pulled from for a while. */
static void a_source_that_is_not_pulled_makes_a_list_stale(void **state)
{
    struct fixture *f = *state;

    struct one *one = get_all(f);
    for (uint32_t i = 0; i < SHARDS; i++)
        shard_says(f, i, 10,
                   &(struct said){ i + 1, 9, i == 2 ? NOW_MS + 3 - TOP_FRESH_MS : NOW_MS });
    assert_false(one->stale);
    rest(f, TOP_AGE_MAX_MS + 50);
    one = get_all(f);
    for (uint32_t i = 0; i < SHARDS; i++)
        shard_says(f, SHARDS + i, 10,
                   &(struct said){ i + 1, 9, i == 2 ? NOW_MS + 2 - TOP_FRESH_MS : NOW_MS });
    assert_true(one->stale);
    assert_int_equal(one->from_ms, NOW_MS + 2 - TOP_FRESH_MS);
    assert_string_equal(one->places, "t3 4 t2 3 t1 2"); /* It is told all the same. */
}

static void a_new_owner_that_has_not_pulled_is_waited_for(void **state)
{
    struct fixture *f = *state;

    struct one *one = get_all(f);
    shard_says(f, 0, 10, &(struct said){ 1, 9, NOW_MS });
    shard_says(f, 1, 10, &(struct said){ 1, 9, 0 });
    assert_int_equal(one->ask.code, CODE(UNAVAILABLE));
    assert_true(f->plain.fake.calls[2].cancelled);
    assert_true(f->plain.fake.calls[3].cancelled);
}

static void two_lives_of_a_collection_are_not_merged(void **state)
{
    struct fixture *f = *state;

    struct one *one = get_all(f);
    shard_says(f, 0, 10, &(struct said){ 1, 9, NOW_MS });
    shard_says(f, 1, 10, &(struct said){ 1, 10, NOW_MS });
    assert_int_equal(one->ask.code, CODE(UNAVAILABLE));
    one = get_all(f);
    fake_cluster_answer(&f->plain.fake, SHARDS, WIRE_OK, SLICE_LITERAL("\xff\xff"));
    assert_int_equal(one->ask.code, CODE(INTERNAL));
}

static void a_caller_that_goes_takes_its_gather_along(void **state)
{
    struct fixture *f = *state;

    struct one *a = get_all(f), *b = get_all(f);
    router_cancel(&f->plain.router, &a->ask.request);
    assert_int_equal(a->ask.code, CODE(CANCELED));
    assert_true(f->plain.fake.calls[0].open);
    router_cancel(&f->plain.router, &b->ask.request);
    for (uint32_t i = 0; i < SHARDS; i++)
        assert_true(f->plain.fake.calls[i].cancelled);
    struct one *c = get_all(f); /* And a new one begins. */
    all_say(f, SHARDS, 10, 1);
    assert_int_equal(c->count, 3);
}

static void a_deadline_ends_the_request_alone(void **state)
{
    struct fixture *f = *state;

    struct one *patient = get_all(f);
    struct one *hasty = get(f, &(struct wish){ .window = "all", .limit = 3, .wait_ms = 40 });
    rest(f, 100);
    assert_int_equal(hasty->ask.code, CODE(UNAVAILABLE));
    assert_int_equal(patient->ask.answers, 0);
    all_say(f, 0, 10, 1);
    assert_int_equal(patient->count, 3);
}

/* What was asked for longest ago makes room, but not while it is gathered. */
static void so_many_lists_are_kept(void **state)
{
    struct fixture *f = *state;
    char names[TOP_LISTS_MAX + 2][8];

    for (uint32_t i = 0; i < TOP_LISTS_MAX + 2; i++)
        snprintf(names[i], sizeof names[i], "c%u", i);
    for (uint32_t i = 0; i < TOP_LISTS_MAX; i++)
        assert_int_equal(get(f, &(struct wish){ .collection = names[i] })->ask.answers, 0);
    struct one *one = get(f, &(struct wish){ .collection = names[TOP_LISTS_MAX] });
    assert_int_equal(one->ask.code, CODE(THROTTLED));
    all_say(f, 0, 100, 1);
    one = get(f, &(struct wish){ .collection = names[TOP_LISTS_MAX + 1] });
    assert_int_equal(one->ask.answers, 0);
    assert_int_equal(f->plain.fake.call_count, (TOP_LISTS_MAX + 1) * SHARDS);
}

static void get_others(struct fixture *f, unsigned count, char names[TOP_LISTS_MAX + 1][16])
{
    for (unsigned i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "c%u", i);
        (void)get(f, &(struct wish){ .collection = names[i] });
    }
}

/* One of more places is told in place of a list for which there is no room. */
static void where_too_much_is_gathered_what_was_known_is_told(void **state)
{
    struct fixture *f = *state;
    char names[TOP_LISTS_MAX + 1][16];

    (void)get(f, &(struct wish){ .window = "all", .limit = 100 });
    all_say(f, 0, 100, 1);
    get_others(f, TOP_LISTS_MAX - 1, names);
    rest(f, TOP_AGE_MAX_MS + 50);
    struct one *longer = get(f, &(struct wish){ .window = "all", .limit = 100 });
    assert_int_equal(longer->ask.answers, 0);
    struct one *known = get(f, &(struct wish){ .window = "all", .limit = 2 });
    assert_int_equal(known->ask.answers, 1);
    assert_true(known->stale);
    assert_string_equal(known->places, "t3 4 t2 3");
    struct one *other = get(f, &(struct wish){ .window = "24h", .limit = 2 });
    assert_int_equal(other->ask.code, CODE(THROTTLED));
}

/* What players may have gathered at once is a half; what is known already is told, as stale. */
static void players_leave_lists_for_keys(void **state)
{
    struct fixture *f = *state;
    char names[TOP_LISTS_MAX + 1][16];

    (void)get(f, &(struct wish){ .window = "all", .limit = 10 });
    all_say(f, 0, 10, 1);
    rest(f, TOP_AGE_MAX_MS + 50);
    f->player = "mallory";
    get_others(f, TOP_LISTS_MAX, names);
    assert_int_equal(f->plain.fake.call_count, (TOP_LISTS_MAX / 2 + 1) * SHARDS);
    assert_int_equal(f->plain.fake.calls[SHARDS].asker, WIRE_ASKER_PLAYERS);
    struct one *known = get(f, &(struct wish){ .window = "all", .limit = 3 });
    assert_int_equal(known->ask.answers, 1);
    assert_true(known->stale);
    assert_string_equal(known->places, "t3 4 t2 3 t1 2");
    assert_int_equal(get(f, &(struct wish){ .collection = "more" })->ask.code, CODE(THROTTLED));
    f->player = NULL;
    assert_int_equal(get(f, &(struct wish){ .collection = "mine" })->ask.answers, 0);
    assert_int_equal(f->plain.fake.call_count, (TOP_LISTS_MAX / 2 + 2) * SHARDS);
}

/* A collection that there is not takes no list that is known. */
static void what_knows_nothing_goes_first(void **state)
{
    struct fixture *f = *state;
    char name[8];

    (void)get_all(f);
    all_say(f, 0, 10, 1);
    for (unsigned i = 0; i < TOP_LISTS_MAX + 8; i++) {
        snprintf(name, sizeof name, "x%u", i);
        uint32_t from = f->plain.fake.call_count;
        (void)get(f, &(struct wish){ .collection = name });
        fake_cluster_answer(&f->plain.fake, from, WIRE_OK, SLICE_LITERAL("\xff\xff"));
    }
    assert_int_equal(get_all(f)->ask.answers, 1);
}

static void a_list_of_a_former_life_is_not_told_as_stale(void **state)
{
    struct fixture *f = *state;

    (void)get_all(f);
    all_say(f, 0, 10, 1);
    (void)get(f, &(struct wish){ .window = "24h", .limit = 3 });
    all_say(f, SHARDS, 10, 1);
    rest(f, TOP_AGE_MAX_MS + 50);
    struct one *one = get_all(f);
    shard_says(f, 2 * SHARDS, 10, &(struct said){ 1, 9, NOW_MS });
    shard_says(f, 2 * SHARDS + 1, 10, &(struct said){ 1, 10, NOW_MS });
    assert_int_equal(one->ask.code, CODE(UNAVAILABLE));
    one = get(f, &(struct wish){ .window = "24h", .limit = 3 }); /* Nor of another window. */
    shard_says(f, 3 * SHARDS, 10, &(struct said){ 1, 9, 0 });
    assert_int_equal(one->ask.code, CODE(UNAVAILABLE));
}

static void what_is_no_wish_is_refused(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(get(f, &(struct wish){ .window = "1y" })->ask.code, CODE(INVALID_ARGUMENT));
    assert_int_equal(get(f, &(struct wish){ .limit = TOP_LIMIT_MAX + 1 })->ask.code,
                     CODE(INVALID_ARGUMENT));
    assert_int_equal(get(f, &(struct wish){ .collection = "No Name" })->ask.code,
                     CODE(INVALID_ARGUMENT));
    assert_int_equal(f->plain.fake.call_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TOP_TEST(a_list_is_that_of_all_shards_and_is_kept_for_a_while),
        TOP_TEST(an_older_list_is_told_for_a_shorter_time),
        TOP_TEST(requests_for_one_list_share_a_gather),
        TOP_TEST(a_silent_shard_makes_what_was_known_stale),
        TOP_TEST(a_source_that_is_not_pulled_makes_a_list_stale),
        TOP_TEST(a_new_owner_that_has_not_pulled_is_waited_for),
        TOP_TEST(two_lives_of_a_collection_are_not_merged),
        TOP_TEST(a_caller_that_goes_takes_its_gather_along),
        TOP_TEST(a_deadline_ends_the_request_alone),
        TOP_TEST(so_many_lists_are_kept),
        TOP_TEST(where_too_much_is_gathered_what_was_known_is_told),
        TOP_TEST(players_leave_lists_for_keys),
        TOP_TEST(what_knows_nothing_goes_first),
        TOP_TEST(a_list_of_a_former_life_is_not_told_as_stale),
        TOP_TEST(what_is_no_wish_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
