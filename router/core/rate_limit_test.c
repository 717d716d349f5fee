#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "router/core/rate_limit.h"

static void a_bucket_holds_a_second_and_fills_at_its_rate(void **state)
{
    struct rate_bucket bucket = { 0 };
    uint32_t wait_ms = 0;
    (void)state;

    for (int i = 0; i < 10; i++)
        assert_true(rate_take(&bucket, 10, 5000, &wait_ms));
    assert_false(rate_take(&bucket, 10, 5000, &wait_ms));
    assert_int_equal(wait_ms, 100);
    assert_false(rate_take(&bucket, 10, 5099, &wait_ms));
    assert_int_equal(wait_ms, 1);
    assert_true(rate_take(&bucket, 10, 5100, &wait_ms));
    assert_false(rate_take(&bucket, 10, 5100, &wait_ms));
    for (int i = 0; i < 10; i++) /* Never more than a second's worth. */
        assert_true(rate_take(&bucket, 10, 60000, &wait_ms));
    assert_false(rate_take(&bucket, 10, 60000, &wait_ms));
}

static void over_ten_seconds_the_rate_is_kept_to_one(void **state)
{
    static const uint32_t rates[] = { 1, 7, 50, 333, 1000, 40000 };
    (void)state;

    for (size_t n = 0; n < sizeof rates / sizeof rates[0]; n++) {
        struct rate_bucket bucket = { 0 };
        uint64_t taken = 0;
        uint32_t wait_ms;

        for (uint64_t ms = 1; ms <= 10000; ms++) {
            for (int i = 0; i < 100; i++)
                taken += rate_take(&bucket, rates[n], ms, &wait_ms);
        }
        assert_in_range(taken, 10ull * rates[n], 11ull * rates[n] + rates[n] / 100 + 1);
    }
}

/* 300 callers meet a bucket of 200 a second that is empty. */
static void who_waits_for_a_bucket_is_told_its_own_turn(void **state)
{
    enum { CALLERS = 300, RATE = 200 };
    struct rate_bucket bucket = { 0 };
    uint64_t turns[CALLERS];
    uint32_t wait_ms = 0, refused = 0;
    (void)state;

    while (rate_take(&bucket, RATE, 5000, &wait_ms))
        ;
    for (uint32_t i = 0; i < CALLERS; i++) {
        turns[i] = 5000 + rate_turn_ms(&bucket, RATE, 5000);
        assert_true(turns[i] > 5000 && (i == 0 || turns[i] >= turns[i - 1] + 5));
    }
    for (uint32_t i = 0; i < CALLERS; i++)
        refused += !rate_take(&bucket, RATE, turns[i], &wait_ms);
    assert_int_equal(refused, 0);
    assert_int_equal(turns[CALLERS - 1], 5000 + CALLERS * 1000 / RATE);
    for (uint32_t i = 0; i < 100 * CALLERS; i++) /* However many ask, and do not wait. */
        assert_in_range(rate_turn_ms(&bucket, RATE, 6500), 0, RATE_TURN_MS_MAX);
}

static void no_limit_is_no_limit(void **state)
{
    struct rate_bucket bucket = { 0 };
    uint32_t wait_ms;
    (void)state;

    for (int i = 0; i < 100000; i++)
        assert_true(rate_take(&bucket, 0, 1, &wait_ms));
}

static void a_heavy_call_is_paid_for_by_the_next(void **state)
{
    struct rate_bucket bucket = { 0 };
    uint32_t wait_ms = 0;
    (void)state;

    assert_true(rate_take(&bucket, 10, 1000, &wait_ms));
    rate_charge(&bucket, 10, 19, 1000);
    assert_false(rate_take(&bucket, 10, 1000, &wait_ms));
    assert_int_equal(wait_ms, 1100);
    rate_charge(&bucket, 10, 1000000, 1000); /* The debt has an end. */
    assert_false(rate_take(&bucket, 10, 1000, &wait_ms));
    assert_int_equal(wait_ms, RATE_RETRY_AFTER_MAX);
}

static void names_have_buckets_of_their_own(void **state)
{
    struct rate_table *table = rate_table_new();
    uint32_t wait_ms;
    (void)state;

    while (rate_take(rate_table_get(table, 7), 5, 1000, &wait_ms))
        ;
    assert_true(rate_take(rate_table_get(table, 8), 5, 1000, &wait_ms));
    assert_false(rate_take(rate_table_get(table, 7), 5, 1000, &wait_ms));
    rate_table_check(table);
    rate_table_free(table);
}

static void a_flood_of_names_does_not_free_whoever_is_held_back(void **state)
{
    struct rate_table *table = rate_table_new();
    uint32_t wait_ms;
    (void)state;

    while (rate_take(rate_table_get(table, 7), 5, 1000, &wait_ms))
        ;
    for (uint64_t name = 100; name < 100 + 4ull * RATE_TABLE_BUCKETS; name++)
        assert_true(rate_take(rate_table_get(table, name), 5, 1000, &wait_ms));
    assert_false(rate_take(rate_table_get(table, 7), 5, 1000, &wait_ms));
    rate_table_check(table);
    rate_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bucket_holds_a_second_and_fills_at_its_rate),
        cmocka_unit_test(over_ten_seconds_the_rate_is_kept_to_one),
        cmocka_unit_test(who_waits_for_a_bucket_is_told_its_own_turn),
        cmocka_unit_test(no_limit_is_no_limit),
        cmocka_unit_test(a_heavy_call_is_paid_for_by_the_next),
        cmocka_unit_test(names_have_buckets_of_their_own),
        cmocka_unit_test(a_flood_of_names_does_not_free_whoever_is_held_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
