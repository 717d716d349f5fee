/* GetCount and BatchGetCounts over shards of the test's making. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/favorites.pb-c.h"
#include "idl/error_code.h"
#include "router/rpc/counts/count_gather.h"
#include "router/rpc/fake/plain_router.h"
#include "runtime/base/check.h"

#define SHARDS   4u
#define ASKS_MAX 80u

/* One request and what came of it. */
struct one {
    struct plain_ask ask;
    uint64_t counts[4];
    int64_t from_ms, to_ms;
    bool stale;
};

struct fixture {
    struct plain_router plain;
    struct one asks[ASKS_MAX];
    unsigned used;
    const char *player; /* Of the token that is sent with what is asked from here on. */
};

static void keep(struct one *one, size_t place, const Holdfast__V1__TargetCount *count)
{
    one->counts[place] = count->count;
    one->from_ms = count->as_of_from_ms;
    one->to_ms = count->as_of_to_ms;
    one->stale |= count->stale;
}

static void reply(struct request *request, const ProtobufCMessage *response)
{
    struct one *one = request->origin;

    one->ask.answers++;
    if (request->method->id == METHOD_GET_COUNT) {
        keep(one, 0, ((const Holdfast__V1__GetCountResponse *)(const void *)response)->count);
        return;
    }
    const Holdfast__V1__BatchGetCountsResponse *all = (const void *)response;
    for (size_t i = 0; i < all->n_counts; i++)
        keep(one, i, all->counts[i]);
}

static const struct request_door door = { .reply = reply, .fail = plain_ask_fail };

static int setup(void **state)
{
    static const struct log silent = { .level_min = LOG_ERROR + 1 };
    struct fixture *f = mem_zalloc(sizeof *f);

    plain_router_init(&f->plain, SHARDS,
                      &(struct router_options){ .log = &silent,
                                                .in_flight_max = 100,
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

static struct one *dispatch(struct fixture *f, enum method_id method,
                            const ProtobufCMessage *message, uint32_t wait_ms)
{
    CHECK(f->used < ASKS_MAX);
    struct one *one = &f->asks[f->used++];

    one->ask.player = f->player;
    plain_router_send(&f->plain, &one->ask, method, message, wait_ms);
    return one;
}

static struct one *get(struct fixture *f, const char *target, bool fresh)
{
    Holdfast__V1__GetCountRequest message = HOLDFAST__V1__GET_COUNT_REQUEST__INIT;

    message.target_id = text_lend(target);
    message.fresh = fresh;
    return dispatch(f, METHOD_GET_COUNT, &message.base, 5000);
}

struct said {
    uint64_t first; /* Of the first target; each next one has one more. */
    uint64_t number;
    int64_t at_ms;
};

/* What call `place` is answered with. Checks that it asks for the shard and for so many targets. */
static void shard_says(struct fixture *f, uint32_t place, size_t targets, struct said said)
{
    Holdfast__Internal__V1__GetPartialsResponse answer =
        HOLDFAST__INTERNAL__V1__GET_PARTIALS_RESPONSE__INIT;
    struct slice body = f->plain.fake.calls[place].body;
    uint64_t counts[8];
    uint8_t bytes[256];

    Holdfast__Internal__V1__GetPartialsRequest *asked =
        holdfast__internal__v1__get_partials_request__unpack(NULL, body.size, body.data);
    assert_non_null(asked);
    assert_int_equal(asked->n_target_ids, targets);
    assert_int_equal(asked->shard, place % SHARDS);
    assert_string_equal(asked->collection, "favorites");
    for (size_t i = 0; i < asked->n_target_ids; i++)
        counts[i] = said.first + i;
    answer.n_counts = asked->n_target_ids;
    answer.counts = counts;
    answer.collection_number = said.number;
    answer.at_ms = said.at_ms;
    size_t size = holdfast__internal__v1__get_partials_response__pack(&answer, bytes);
    holdfast__internal__v1__get_partials_request__free_unpacked(asked, NULL);
    fake_cluster_answer(&f->plain.fake, place, WIRE_OK, (struct slice){ bytes, size });
}

/* All shards of the gather whose first call is `from`: 1 + 2 + 3 + 4 times `first`. */
static void all_say(struct fixture *f, uint32_t from, size_t targets, uint64_t first)
{
    for (uint32_t i = 0; i < SHARDS; i++)
        shard_says(f, from + i, targets, (struct said){ first * (i + 1), 9, 100 + i });
}

static void a_count_is_the_sum_of_all_shards_and_is_kept_for_a_while(void **state)
{
    struct fixture *f = *state;

    struct one *first = get(f, "g1", false);
    assert_int_equal(f->plain.fake.call_count, SHARDS);
    all_say(f, 0, 1, 1);
    assert_int_equal(first->ask.answers, 1);
    assert_int_equal(first->counts[0], 10);
    assert_int_equal(first->from_ms, 100);
    assert_int_equal(first->to_ms, 103);
    assert_false(first->stale);
    struct one *again = get(f, "g1", false);
    assert_int_equal(again->ask.answers, 1);
    assert_int_equal(again->counts[0], 10);
    assert_int_equal(f->plain.fake.call_count, SHARDS);
    assert_int_equal(counts_stats(f->plain.router.counts).memo.hits, 1);
}

static void a_fresh_one_is_gathered_after_it_was_asked_for(void **state)
{
    struct fixture *f = *state;

    struct one *known = get(f, "g1", false);
    struct one *fresh = get(f, "g1", true); /* That gather may have read a shard already. */
    struct one *joins = get(f, "g1", false);
    assert_int_equal(f->plain.fake.call_count, 2 * SHARDS);
    all_say(f, 0, 1, 1);
    assert_int_equal(known->counts[0], 10);
    assert_int_equal(fresh->ask.answers, 0);
    all_say(f, SHARDS, 1, 2);
    assert_int_equal(fresh->counts[0], 20);
    assert_int_equal(joins->ask.answers, 1);
    assert_int_equal(get(f, "g1", false)->counts[0], 20);
}

static void requests_for_one_target_share_a_gather(void **state)
{
    struct fixture *f = *state;

    struct one *a = get(f, "g1", false), *b = get(f, "g1", false);
    assert_int_equal(f->plain.fake.call_count, SHARDS);
    all_say(f, 0, 1, 1);
    assert_int_equal(a->ask.answers, 1);
    assert_int_equal(b->ask.answers, 1);
    assert_int_equal(b->counts[0], 10);
    assert_int_equal(counts_stats(f->plain.router.counts).shared, 1);
}

/* While four are under way, the next one takes along all that comes. */
static void what_waits_goes_together(void **state)
{
    static const char *const targets[] = { "a", "b", "c", "d", "e", "f" };
    struct fixture *f = *state;
    struct one *asks[6];

    for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
        asks[i] = get(f, targets[i], false);
    assert_int_equal(f->plain.fake.call_count, 4 * SHARDS);
    all_say(f, 0, 1, 1);
    assert_int_equal(asks[0]->ask.answers, 1);
    assert_int_equal(f->plain.fake.call_count, 5 * SHARDS);
    all_say(f, 4 * SHARDS, 2, 1);
    assert_int_equal(asks[4]->counts[0], 10);
    assert_int_equal(asks[5]->counts[0], 14);
    for (uint32_t i = 1; i < 4; i++)
        all_say(f, i * SHARDS, 1, 1);
    for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
        assert_int_equal(asks[i]->ask.answers, 1);
}

static void a_batch_asks_each_shard_once(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__BatchGetCountsRequest message = HOLDFAST__V1__BATCH_GET_COUNTS_REQUEST__INIT;
    char *targets[] = { text_lend("x"), text_lend("y"), text_lend("z") };

    message.n_target_ids = 3;
    message.target_ids = targets;
    struct one *one = dispatch(f, METHOD_BATCH_GET_COUNTS, &message.base, 5000);
    assert_int_equal(f->plain.fake.call_count, SHARDS);
    all_say(f, 0, 3, 1);
    assert_int_equal(one->ask.answers, 1);
    assert_int_equal(one->counts[0], 10);
    assert_int_equal(one->counts[2], 18);
    message.n_target_ids = 0;
    assert_int_equal(dispatch(f, METHOD_BATCH_GET_COUNTS, &message.base, 5000)->ask.code,
                     CODE(INVALID_ARGUMENT));
}

static void two_lives_of_a_collection_are_not_added_up(void **state)
{
    struct fixture *f = *state;

    struct one *one = get(f, "g1", false);
    shard_says(f, 0, 1, (struct said){ 5, 9, 100 });
    shard_says(f, 1, 1, (struct said){ 5, 10, 100 });
    assert_int_equal(one->ask.code, CODE(UNAVAILABLE));
    assert_true(f->plain.fake.calls[2].cancelled);
    assert_true(f->plain.fake.calls[3].cancelled);
    assert_int_equal(counts_stats(f->plain.router.counts).gathers_failed, 1);
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

static void a_silent_shard_makes_what_was_known_stale(void **state)
{
    struct fixture *f = *state;

    struct one *one = get(f, "g1", false);
    all_say(f, 0, 1, 1);
    assert_int_equal(one->counts[0], 10);
    rest(f, 80);
    struct one *stale = get(f, "g1", false), *fresh = get(f, "g1", true);
    struct one *unknown = get(f, "g2", false);
    assert_int_equal(f->plain.fake.call_count, 4 * SHARDS);
    rest(f, 2100);
    for (uint32_t i = 1; i < 4; i++) /* Past the deadline of the gathers. */
        fake_cluster_fail(&f->plain.fake, i * SHARDS + 2, ERR_TIMEOUT);
    rest(f, 50);
    assert_int_equal(stale->ask.answers, 1);
    assert_int_equal(stale->counts[0], 10);
    assert_true(stale->stale);
    assert_int_equal(stale->to_ms, 103);
    assert_int_equal(fresh->ask.answers, 1);
    assert_true(fresh->ask.code != 0);
    assert_int_equal(unknown->ask.answers, 1);
    assert_true(unknown->ask.code != 0);
    assert_int_equal(counts_stats(f->plain.router.counts).stale, 1);
    assert_int_equal(counts_stats(f->plain.router.counts).gathering, 0);
}

static void a_caller_that_goes_takes_its_gather_along(void **state)
{
    struct fixture *f = *state;

    struct one *a = get(f, "g1", false), *b = get(f, "g1", false);
    router_cancel(&f->plain.router, &a->ask.request);
    assert_int_equal(a->ask.code, CODE(CANCELED));
    assert_true(f->plain.fake.calls[0].open);
    router_cancel(&f->plain.router, &b->ask.request);
    for (uint32_t i = 0; i < SHARDS; i++)
        assert_true(f->plain.fake.calls[i].cancelled);
    assert_int_equal(counts_stats(f->plain.router.counts).gathering, 0);
}

static void a_deadline_ends_the_request_alone(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GetCountRequest message = HOLDFAST__V1__GET_COUNT_REQUEST__INIT;

    message.target_id = text_lend("g1");
    struct one *patient = get(f, "g1", false);
    struct one *hasty = dispatch(f, METHOD_GET_COUNT, &message.base, 40);
    rest(f, 100);
    assert_int_equal(hasty->ask.code, CODE(UNAVAILABLE));
    assert_int_equal(patient->ask.answers, 0);
    all_say(f, 0, 1, 1);
    assert_int_equal(patient->counts[0], 10);
}

/* Every shard of the gathers under way is silent, and so many targets wait: there is no room. */
static void fill(struct fixture *f, char names[20][8])
{
    static const char *const collections[20] = {
        "c0",  "c1",  "c2",  "c3",  "c4",  "c5",  "c6",  "c7",  "c8",  "c9",
        "c10", "c11", "c12", "c13", "c14", "c15", "c16", "c17", "c18", "c19",
    };
    Holdfast__V1__GetCountRequest message = HOLDFAST__V1__GET_COUNT_REQUEST__INIT;

    for (unsigned i = 0; i < 20; i++) {
        snprintf(names[i], sizeof names[i], "n%u", i);
        message.collection = text_lend(collections[i]);
        message.target_id = names[i];
        (void)dispatch(f, METHOD_GET_COUNT, &message.base, 5000);
    }
}

static void where_too_much_waits_what_was_known_is_told(void **state)
{
    struct fixture *f = *state;
    char names[20][8];

    (void)get(f, "g1", false);
    all_say(f, 0, 1, 1);
    rest(f, 80);
    fill(f, names);
    struct one *known = get(f, "g1", false), *unknown = get(f, "g2", false);
    assert_int_equal(known->ask.answers, 1);
    assert_int_equal(known->ask.code, 0);
    assert_int_equal(known->counts[0], 10);
    assert_true(known->stale);
    assert_int_equal(known->to_ms, 103);
    assert_int_equal(unknown->ask.code, CODE(THROTTLED));
    assert_int_equal(get(f, "g1", true)->ask.code, CODE(THROTTLED)); /* It asked for no old one. */
}

static void a_count_of_a_former_life_is_not_told_as_stale(void **state)
{
    struct fixture *f = *state;

    (void)get(f, "g1", false);
    all_say(f, 0, 1, 1);
    rest(f, 80);
    struct one *one = get(f, "g1", false);
    shard_says(f, SHARDS, 1, (struct said){ 5, 9, 100 });
    shard_says(f, SHARDS + 1, 1, (struct said){ 0, 10, 100 });
    assert_int_equal(one->ask.code, CODE(UNAVAILABLE));
    one = get(f, "g1", false); /* And not later, either. */
    fake_cluster_fail(&f->plain.fake, 2 * SHARDS, ERR_CLOSED);
    rest(f, 2200);
    for (uint32_t place = 2 * SHARDS; place < f->plain.fake.call_count; place++) {
        if (f->plain.fake.calls[place].open)
            fake_cluster_fail(&f->plain.fake, place, ERR_TIMEOUT);
    }
    rest(f, 50);
    assert_int_equal(one->ask.answers, 1);
    assert_true(one->ask.code != 0);
    assert_false(one->stale);
}

/* Players have a part of the room, and those who ask for fresh counts a part of that. */
static void players_leave_room_for_keys(void **state)
{
    struct fixture *f = *state;
    struct one *last = NULL;
    char names[20][8];

    f->player = "mallory";
    for (unsigned i = 0; i < 4; i++) {
        Holdfast__V1__GetCountRequest message = HOLDFAST__V1__GET_COUNT_REQUEST__INIT;
        snprintf(names[i], sizeof names[i], "c%u", i);
        message.collection = names[i];
        message.target_id = text_lend("t");
        message.fresh = true;
        last = dispatch(f, METHOD_GET_COUNT, &message.base, 5000);
    }
    assert_int_equal(last->ask.code, CODE(THROTTLED)); /* One is under way, two wait. */
    assert_int_equal(f->plain.fake.call_count, SHARDS);
    assert_int_equal(f->plain.fake.calls[0].asker, WIRE_ASKER_PLAYERS);
    fill(f, names);
    assert_int_equal(f->plain.fake.call_count, 3 * SHARDS);
    f->player = NULL;
    struct one *of_key = get(f, "g1", true);
    assert_int_equal(f->plain.fake.call_count, 4 * SHARDS);
    all_say(f, 3 * SHARDS, 1, 1);
    assert_int_equal(of_key->counts[0], 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_count_is_the_sum_of_all_shards_and_is_kept_for_a_while,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_fresh_one_is_gathered_after_it_was_asked_for, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(requests_for_one_target_share_a_gather, setup, teardown),
        cmocka_unit_test_setup_teardown(what_waits_goes_together, setup, teardown),
        cmocka_unit_test_setup_teardown(a_batch_asks_each_shard_once, setup, teardown),
        cmocka_unit_test_setup_teardown(two_lives_of_a_collection_are_not_added_up, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_silent_shard_makes_what_was_known_stale, setup, teardown),
        cmocka_unit_test_setup_teardown(a_caller_that_goes_takes_its_gather_along, setup, teardown),
        cmocka_unit_test_setup_teardown(a_deadline_ends_the_request_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(where_too_much_waits_what_was_known_is_told, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_count_of_a_former_life_is_not_told_as_stale, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(players_leave_room_for_keys, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
