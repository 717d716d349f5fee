/* The top list of all shards, of what the test has each of them say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "router/core/top_merge.h"
#include "runtime/base/check.h"

#define SHARDS      3u
#define MANY_SHARDS 4096u

struct fixture {
    struct arena arena;
    struct top_merge merge;
};

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);

    top_merge_init(&f->merge, SHARDS, 10, &f->arena);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    top_merge_deinit(&f->merge);
    arena_deinit(&f->arena);
    free(f);
    return 0;
}

static void begin(struct fixture *f, uint32_t shard_count, uint32_t limit)
{
    top_merge_deinit(&f->merge);
    top_merge_init(&f->merge, shard_count, limit, &f->arena);
}

#define MERGE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Entries as "target count target count"; its bytes do not outlive the call. */
struct said {
    const char *entries;
    uint64_t number; /* 0: 9. */
    int64_t at_ms, pulled_ms;
};

static err says(struct fixture *f, uint32_t shard, const struct said *said)
{
    Holdfast__Internal__V1__GetShardTopResponse response =
        HOLDFAST__INTERNAL__V1__GET_SHARD_TOP_RESPONSE__INIT;
    Holdfast__V1__TopEntry entries[8], *list[8];
    char names[8][16];
    const char *at = said->entries;
    unsigned long long count;
    int read;

    for (; sscanf(at, "%15s %llu%n", names[response.n_entries], &count, &read) == 2; at += read) {
        Holdfast__V1__TopEntry *entry = &entries[response.n_entries];
        holdfast__v1__top_entry__init(entry);
        entry->target_id = names[response.n_entries];
        entry->count = count;
        list[response.n_entries++] = entry;
    }
    response.entries = list;
    response.collection_number = said->number > 0 ? said->number : 9;
    response.at_ms = said->at_ms > 0 ? said->at_ms : 1000;
    response.pulled_ms = said->pulled_ms > 0 ? said->pulled_ms : 900;
    return top_merge_add(&f->merge, shard, &response);
}

static void assert_places(const struct fixture *f, const char *wanted)
{
    char told[256] = "";

    for (size_t i = 0; i < f->merge.count; i++)
        snprintf(told + strlen(told), sizeof told - strlen(told), "%s%s %llu", i > 0 ? " " : "",
                 f->merge.places[i].target, (unsigned long long)f->merge.places[i].count);
    assert_string_equal(told, wanted);
}

static void the_highest_of_all_shards_come_first(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(says(f, 2, &(struct said){ .entries = "pong 7 doom 3" }), ERR_OK);
    assert_int_equal(says(f, 0, &(struct said){ .entries = "zork 9 asteroids 3" }), ERR_OK);
    assert_false(top_merge_is_whole(&f->merge));
    assert_int_equal(says(f, 1, &(struct said){ .entries = "" }), ERR_OK);
    assert_true(top_merge_is_whole(&f->merge));
    top_merge_finish(&f->merge);
    assert_places(f, "zork 9 pong 7 asteroids 3 doom 3");
}

static void what_is_behind_the_limit_is_left_out(void **state)
{
    struct fixture *f = *state;

    begin(f, SHARDS, 4);
    assert_int_equal(says(f, 0, &(struct said){ .entries = "d 5 e 5" }), ERR_OK);
    assert_int_equal(says(f, 1, &(struct said){ .entries = "c 5 f 5" }), ERR_OK);
    assert_int_equal(says(f, 2, &(struct said){ .entries = "b 5 a 5" }), ERR_OK);
    top_merge_finish(&f->merge);
    assert_places(f, "a 5 b 5 c 5 d 5");
}

static void a_list_without_places_is_whole(void **state)
{
    struct fixture *f = *state;

    for (uint32_t shard = 0; shard < SHARDS; shard++)
        assert_int_equal(says(f, shard, &(struct said){ .entries = "" }), ERR_OK);
    top_merge_finish(&f->merge);
    assert_places(f, "");
}

/* From what the least was pulled, until the last was read. */
static void a_list_is_as_old_as_its_oldest_shard(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(says(f, 0, &(struct said){ "", 0, 2000, 1900 }), ERR_OK);
    assert_int_equal(says(f, 1, &(struct said){ "", 0, 2500, 1200 }), ERR_OK);
    assert_int_equal(says(f, 2, &(struct said){ "", 0, 2100, 2050 }), ERR_OK);
    top_merge_finish(&f->merge);
    assert_int_equal(f->merge.from_ms, 1200);
    assert_int_equal(f->merge.to_ms, 2500);
}

static void clocks_that_differ_make_no_interval_that_runs_backwards(void **state)
{
    struct fixture *f = *state;

    for (uint32_t shard = 0; shard < SHARDS; shard++)
        assert_int_equal(says(f, shard, &(struct said){ "", 0, 2000, 2300 }), ERR_OK);
    top_merge_finish(&f->merge);
    assert_int_equal(f->merge.from_ms, 2000);
    assert_int_equal(f->merge.to_ms, 2000);
}

static void two_lives_of_a_collection_are_no_list(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(says(f, 0, &(struct said){ .entries = "a 1" }), ERR_OK);
    assert_int_equal(says(f, 1, &(struct said){ .entries = "a 1", .number = 10 }), ERR_CONFLICT);
    assert_false(top_merge_is_whole(&f->merge));
}

static void a_shard_that_has_pulled_nothing_yet_is_waited_for(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__GetShardTopResponse response =
        HOLDFAST__INTERNAL__V1__GET_SHARD_TOP_RESPONSE__INIT;

    response.collection_number = 9;
    response.at_ms = 1000;
    assert_int_equal(top_merge_add(&f->merge, 0, &response), ERR_UNAVAILABLE);
    response.pulled_ms = -1;
    assert_int_equal(top_merge_add(&f->merge, 0, &response), ERR_UNAVAILABLE);
}

static void answers_that_make_no_sense_are_refused(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__GetShardTopResponse response =
        HOLDFAST__INTERNAL__V1__GET_SHARD_TOP_RESPONSE__INIT;
    Holdfast__V1__TopEntry entry = HOLDFAST__V1__TOP_ENTRY__INIT;
    Holdfast__V1__TopEntry *list[] = { &entry };

    assert_int_equal(says(f, SHARDS, &(struct said){ .entries = "" }), ERR_CORRUPT);
    assert_int_equal(says(f, 0, &(struct said){ .entries = "a 0" }), ERR_CORRUPT);
    assert_int_equal(says(f, 0, &(struct said){ .entries = "a 9223372036854775808" }), ERR_CORRUPT);
    assert_int_equal(says(f, 0, &(struct said){ .entries = "a 9223372036854775807" }), ERR_OK);
    assert_int_equal(says(f, 0, &(struct said){ .entries = "" }), ERR_CORRUPT); /* Twice. */
    response.at_ms = response.pulled_ms = 1000;
    assert_int_equal(top_merge_add(&f->merge, 1, &response), ERR_CORRUPT); /* Of no number. */
    response.collection_number = 9;
    response.entries = list;
    response.n_entries = 1;
    entry.count = 1;
    assert_int_equal(top_merge_add(&f->merge, 1, &response), ERR_CORRUPT); /* Of no target. */
    response.n_entries = TOP_LIMIT_MAX + 1;
    assert_int_equal(top_merge_add(&f->merge, 1, &response), ERR_CORRUPT);
}

/* A thousand places of each shard; shards tell ever higher counts, or ever lower ones. */
static void says_many(struct fixture *f, uint32_t shard, bool rising)
{
    Holdfast__Internal__V1__GetShardTopResponse response =
        HOLDFAST__INTERNAL__V1__GET_SHARD_TOP_RESPONSE__INIT;
    static Holdfast__V1__TopEntry entries[TOP_LIMIT_MAX], *list[TOP_LIMIT_MAX];
    static char names[TOP_LIMIT_MAX][130];
    uint32_t shards = f->merge.shard_count;

    response.at_ms = response.pulled_ms = 1000;
    response.collection_number = 9;
    response.entries = list;
    response.n_entries = TOP_LIMIT_MAX;
    for (uint32_t i = 0; i < TOP_LIMIT_MAX; i++) {
        snprintf(names[i], sizeof names[i], "s%ut%0120u", shard, i);
        holdfast__v1__top_entry__init(&entries[i]);
        entries[i].target_id = names[i];
        entries[i].count = (uint64_t)shards * (TOP_LIMIT_MAX - i) +
                           (rising ? (uint64_t)shard * TOP_LIMIT_MAX * shards : shards - 1 - shard);
        list[i] = &entries[i];
    }
    assert_int_equal(top_merge_add(&f->merge, shard, &response), ERR_OK);
}

static void a_thousand_of_each_shard_are_merged(void **state)
{
    struct fixture *f = *state;

    begin(f, SHARDS, TOP_LIMIT_MAX);
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        says_many(f, shard, false);
    top_merge_finish(&f->merge);
    assert_int_equal(f->merge.count, TOP_LIMIT_MAX);
    for (uint32_t i = 0; i < TOP_LIMIT_MAX; i++)
        assert_int_equal(f->merge.places[i].count, SHARDS * TOP_LIMIT_MAX + SHARDS - 1 - i);
    assert_int_equal(strncmp(f->merge.places[0].target, "s0t", 3), 0);
}

static void assert_small(const struct fixture *f)
{
    size_t bytes =
        f->arena.total_bytes + f->merge.texts[0].total_bytes + f->merge.texts[1].total_bytes;

    assert_true(f->merge.count <= 2 * TOP_LIMIT_MAX);
    assert_true(bytes < 1000000);
}

/* However many shards there are. */
static void what_is_kept_does_not_grow_with_shards(void **state)
{
    struct fixture *f = *state;

    for (uint32_t rising = 0; rising <= 1; rising++) {
        begin(f, MANY_SHARDS, TOP_LIMIT_MAX);
        for (uint32_t shard = 0; shard < MANY_SHARDS; shard++) {
            says_many(f, shard, rising > 0);
            assert_small(f);
        }
        top_merge_finish(&f->merge);
        assert_int_equal(f->merge.count, TOP_LIMIT_MAX);
        uint64_t highest = f->merge.places[0].count, lowest = f->merge.places[999].count;
        assert_int_equal(highest - lowest, rising > 0 ? 999 * (uint64_t)MANY_SHARDS : 999);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MERGE_TEST(the_highest_of_all_shards_come_first),
        MERGE_TEST(what_is_behind_the_limit_is_left_out),
        MERGE_TEST(a_list_without_places_is_whole),
        MERGE_TEST(a_list_is_as_old_as_its_oldest_shard),
        MERGE_TEST(clocks_that_differ_make_no_interval_that_runs_backwards),
        MERGE_TEST(two_lives_of_a_collection_are_no_list),
        MERGE_TEST(a_shard_that_has_pulled_nothing_yet_is_waited_for),
        MERGE_TEST(answers_that_make_no_sense_are_refused),
        MERGE_TEST(a_thousand_of_each_shard_are_merged),
        MERGE_TEST(what_is_kept_does_not_grow_with_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
