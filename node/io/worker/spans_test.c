#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/io/worker/spans.h"

#define SHARDS 4u
#define SHARD  2u
#define MS     UINT64_C(1000000)

static int setup(void **state)
{
    *state = spans_new(SHARDS);
    return 0;
}

static int teardown(void **state)
{
    spans_free(*state);
    return 0;
}

/* Call `id`, whose trace begins with it, arrives at `at` and is proposed as entry `index`. */
static void begin(struct spans *spans, uint64_t id, uint64_t at, uint64_t index)
{
    struct span_call call = {
        .call = id, .arrived_ns = at, .begun_ns = at, .shard = SHARD, .trace = { (uint8_t)id }
    };

    spans_begin(spans, &call);
    if (index != 0)
        spans_proposed(spans, id, index);
}

static uint64_t sum(const struct span_times *times)
{
    return times->queue_ns + times->prepare_ns + times->log_ns + times->replicas_ns +
           times->apply_ns + times->rest_ns;
}

static void a_calls_time_is_split_by_what_happened_to_its_entry(void **state)
{
    struct spans *spans = *state;
    struct span_call call = {
        .call = 9, .arrived_ns = 10 * MS, .begun_ns = 12 * MS, .shard = SHARD, .trace = { 9 }
    };
    struct span_times times;

    spans_begin(spans, &call);
    spans_proposed(spans, 9, 101);
    spans_handed(spans, SHARD, 101, 15 * MS);
    spans_persisted(spans, SHARD, 101, 20 * MS);
    assert_false(spans_awaits(spans, SHARD, 100));
    assert_true(spans_awaits(spans, SHARD, 101));
    spans_committed(spans, SHARD, 101, 320 * MS);
    assert_false(spans_awaits(spans, SHARD, 101));
    spans_times(spans, spans_find(spans, 9), 321 * MS, &times);
    assert_true(times.logged);
    assert_int_equal(times.queue_ns, 2 * MS);
    assert_int_equal(times.prepare_ns, 3 * MS);
    assert_int_equal(times.log_ns, 5 * MS);
    assert_int_equal(times.replicas_ns, 300 * MS);
    assert_int_equal(times.apply_ns, 1 * MS);
    assert_int_equal(sum(&times), 311 * MS);
}

/* A majority of other disks may be sooner than ours. */
static void a_slow_disk_here_counts_until_the_majority_had_it(void **state)
{
    struct spans *spans = *state;
    struct span_times times;

    begin(spans, 9, 1 * MS, 101);
    spans_handed(spans, SHARD, 101, 2 * MS);
    spans_committed(spans, SHARD, 101, 6 * MS);
    spans_persisted(spans, SHARD, 101, 500 * MS);
    spans_times(spans, spans_find(spans, 9), 7 * MS, &times);
    assert_int_equal(times.log_ns, 4 * MS);
    assert_int_equal(times.replicas_ns, 0);
    assert_int_equal(sum(&times), 6 * MS);
}

static void what_never_became_an_entry_rests(void **state)
{
    struct spans *spans = *state;
    struct span_times times;

    begin(spans, 9, 1 * MS, 0);
    spans_times(spans, spans_find(spans, 9), 8 * MS, &times);
    assert_false(times.logged);
    assert_int_equal(times.rest_ns, 7 * MS);
    /* Proposed, and its owner was deposed before the log had it. */
    begin(spans, 10, 1 * MS, 50);
    spans_forget(spans, SHARD);
    spans_handed(spans, SHARD, 50, 2 * MS);
    spans_times(spans, spans_find(spans, 10), 8 * MS, &times);
    assert_false(times.logged);
    assert_int_equal(sum(&times), 7 * MS);
}

static void replicas_are_told_the_first_trace_among_the_entries(void **state)
{
    struct spans *spans = *state;

    assert_null(spans_trace(spans, SHARD, 1, 1000));
    begin(spans, 5, 0, 101);
    begin(spans, 6, 0, 102);
    spans_handed(spans, SHARD, 102, 1);
    spans_handed(spans, SHARD, 103, 2); /* No call's: the owner's own. */
    begin(spans, 7, 0, 104);
    spans_handed(spans, SHARD, 104, 3);
    assert_int_equal(spans_trace(spans, SHARD, 101, 102)[0], 5);
    assert_int_equal(spans_trace(spans, SHARD, 104, 104)[0], 7);
    assert_int_equal(spans_trace(spans, SHARD, 102, 110)[0], 5);
    assert_null(spans_trace(spans, SHARD, 103, 103));
    assert_null(spans_trace(spans, SHARD, 105, 110));
    assert_null(spans_trace(spans, SHARD, 1, 100));
    assert_null(spans_trace(spans, 0, 101, 104));
}

/* While a majority is away no write ends: memory stays, and nothing is told wrong. */
static void a_long_stall_takes_no_more_memory_and_the_sum_holds(void **state)
{
    struct spans *spans = *state;
    struct span_times times;
    uint64_t count = 3 * SPAN_WRITES_MAX;

    for (uint64_t i = 1; i <= count; i++) {
        begin(spans, i, i * MS, 100 + i);
        spans_handed(spans, SHARD, 100 + i, i * MS);
        spans_persisted(spans, SHARD, 100 + i, i * MS + 1);
    }
    assert_true(spans_awaits(spans, SHARD, 100 + count));
    spans_committed(spans, SHARD, 100 + count, 1000 * MS);
    for (uint64_t i = 1; i <= count; i++) {
        spans_times(spans, spans_find(spans, i), 1001 * MS, &times);
        assert_true(times.logged);
        assert_int_equal(sum(&times), (1001 - i) * MS);
        assert_true(times.replicas_ns >= (1000 - count) * MS - MS);
    }
    assert_int_equal(spans_trace(spans, SHARD, 101, 101)[0], 1);
    /* The next ones have room again. */
    begin(spans, 200, 2000 * MS, 900);
    spans_handed(spans, SHARD, 900, 2001 * MS);
    spans_times(spans, spans_find(spans, 200), 2005 * MS, &times);
    assert_int_equal(times.prepare_ns, 1 * MS);
}

static void a_call_that_a_newer_one_displaced_is_not_found(void **state)
{
    struct spans *spans = *state;

    assert_null(spans_find(spans, 9));
    begin(spans, 9, 0, 0);
    assert_non_null(spans_find(spans, 9));
    begin(spans, 9 + SPAN_CALLS, 0, 0);
    assert_null(spans_find(spans, 9));
    spans_proposed(spans, 9, 7); /* Changes nothing. */
    assert_int_equal(spans_find(spans, 9 + SPAN_CALLS)->index, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_calls_time_is_split_by_what_happened_to_its_entry),
        TEST(a_slow_disk_here_counts_until_the_majority_had_it),
        TEST(what_never_became_an_entry_rests),
        TEST(replicas_are_told_the_first_trace_among_the_entries),
        TEST(a_long_stall_takes_no_more_memory_and_the_sum_holds),
        TEST(a_call_that_a_newer_one_displaced_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
