/* GetRank over one shard of the test's making. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/internal/v1/top.pb-c.h"
#include "holdfast/v1/favorites.pb-c.h"
#include "idl/error_code.h"
#include "router/rpc/counts/rank_request.h"
#include "router/rpc/fake/plain_router.h"
#include "runtime/base/check.h"

#define NOW_MS 50000

struct fixture {
    struct plain_router plain;
    struct plain_ask asks[2];
    unsigned used;
    Holdfast__V1__GetRankResponse told;
    bool counts;
};

static struct fixture *last;

static void reply(struct request *request, const ProtobufCMessage *response)
{
    struct plain_ask *ask = request->origin;

    ask->answers++;
    last->told = *(const Holdfast__V1__GetRankResponse *)(const void *)response;
    last->counts = last->told._count_case != 0;
}

static const struct request_door door = { .reply = reply, .fail = plain_ask_fail };

static int setup(void **state)
{
    static const struct log silent = { .level_min = LOG_ERROR + 1 };
    struct fixture *f = mem_zalloc(sizeof *f);

    plain_router_init(&f->plain, 1,
                      &(struct router_options){ .log = &silent,
                                                .in_flight_max = 100,
                                                .count_age_ms = 50,
                                                .count_memo_bytes = 1u << 16 });
    f->plain.door = &door;
    last = f;
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

static struct plain_ask *ask(struct fixture *f, const char *target, const char *window)
{
    Holdfast__V1__GetRankRequest message = HOLDFAST__V1__GET_RANK_REQUEST__INIT;
    struct plain_ask *one = &f->asks[f->used++];

    message.target_id = text_lend(target);
    message.window = text_lend(window);
    plain_router_send(&f->plain, one, METHOD_GET_RANK, &message.base, 5000);
    return one;
}

/* The shard has so many targets: t0 with the most, and 5 the last. */
static void list_of(struct fixture *f, uint32_t count)
{
    Holdfast__Internal__V1__GetShardTopResponse answer =
        HOLDFAST__INTERNAL__V1__GET_SHARD_TOP_RESPONSE__INIT;
    Holdfast__V1__TopEntry *entries = mem_zalloc((count + 1) * sizeof *entries);
    Holdfast__V1__TopEntry **list = mem_zalloc((count + 1) * sizeof *list);
    char(*names)[16] = mem_zalloc((count + 1) * sizeof *names);

    for (uint32_t i = 0; i < count; i++) {
        holdfast__v1__top_entry__init(&entries[i]);
        (void)snprintf(names[i], sizeof names[i], "t%u", i);
        entries[i].target_id = names[i];
        entries[i].count = 4 + count - i;
        list[i] = &entries[i];
    }
    answer.entries = list;
    answer.n_entries = count;
    answer.collection_number = 9;
    answer.pulled_ms = NOW_MS - 100;
    answer.at_ms = NOW_MS;
    size_t size = protobuf_c_message_get_packed_size(&answer.base);
    uint8_t *bytes = mem_alloc(size + 1);
    (void)protobuf_c_message_pack(&answer.base, bytes);
    fake_cluster_answer(&f->plain.fake, 0, WIRE_OK, (struct slice){ bytes, size });
    free(bytes);
    free(names);
    free(list);
    free(entries);
}

static void a_target_of_the_list_has_its_place_in_it(void **state)
{
    struct fixture *f = *state;
    const struct plain_ask *one = ask(f, "t2", "");

    list_of(f, 7);
    assert_int_equal(one->answers, 1);
    assert_int_equal(f->told.rank, 3);
    assert_true(f->counts);
    assert_int_equal(f->told.count, 9);
    assert_int_equal(f->told.listed, 7);
    assert_int_equal(f->told.last_count, 5);
    assert_int_equal(f->told.as_of_from_ms, NOW_MS - 100);
}

static void one_that_is_in_no_full_list_counts_nothing(void **state)
{
    struct fixture *f = *state;
    const struct plain_ask *one = ask(f, "none", "7d");

    list_of(f, 7);
    assert_int_equal(one->answers, 1);
    assert_int_equal(f->told.rank, 0);
    assert_true(f->counts);
    assert_int_equal(f->told.count, 0);
}

static void outside_of_a_full_list_the_total_is_gathered(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__GetPartialsResponse total =
        HOLDFAST__INTERNAL__V1__GET_PARTIALS_RESPONSE__INIT;
    uint64_t count = 3;
    uint8_t bytes[64];
    const struct plain_ask *one = ask(f, "low", "all");

    list_of(f, TOP_LIMIT_MAX);
    assert_int_equal(one->answers, 0);
    assert_int_equal(f->plain.fake.call_count, 2);
    total.counts = &count;
    total.n_counts = 1;
    total.collection_number = 9;
    total.at_ms = NOW_MS;
    size_t size = protobuf_c_message_pack(&total.base, bytes);
    fake_cluster_answer(&f->plain.fake, 1, WIRE_OK, (struct slice){ bytes, size });
    assert_int_equal(one->answers, 1);
    assert_int_equal(f->told.rank, 0);
    assert_int_equal(f->told.count, 3);
    assert_int_equal(f->told.listed, TOP_LIMIT_MAX);
    assert_int_equal(f->told.last_count, 5);
}

static void outside_of_a_full_list_of_hours_no_count_is_known(void **state)
{
    struct fixture *f = *state;
    const struct plain_ask *one = ask(f, "low", "24h");

    list_of(f, TOP_LIMIT_MAX);
    assert_int_equal(one->answers, 1);
    assert_int_equal(f->told.rank, 0);
    assert_false(f->counts);
}

#define RANK_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_TEST(a_target_of_the_list_has_its_place_in_it),
        RANK_TEST(one_that_is_in_no_full_list_counts_nothing),
        RANK_TEST(outside_of_a_full_list_the_total_is_gathered),
        RANK_TEST(outside_of_a_full_list_of_hours_no_count_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
