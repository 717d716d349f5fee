#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "router/core/metadata_breaker.h"

static void fail_times(struct metadata_breaker *breaker, uint32_t times, uint64_t now_ms)
{
    for (uint32_t i = 0; i < times; i++) {
        assert_true(metadata_breaker_asks(breaker, now_ms));
        metadata_breaker_failed(breaker, now_ms);
    }
}

static void failures_in_a_row_make_it_rest(void **state)
{
    struct metadata_breaker breaker = { 0 };
    (void)state;

    fail_times(&breaker, METADATA_FAILURES - 1, 1000);
    metadata_breaker_succeeded(&breaker);
    fail_times(&breaker, METADATA_FAILURES, 1000);
    assert_true(metadata_breaker_is_open(&breaker));
    assert_false(metadata_breaker_asks(&breaker, 1000));
    assert_false(metadata_breaker_asks(&breaker, 1000 + METADATA_REST_MS - 1));
}

static void one_request_tries_and_the_rest_doubles(void **state)
{
    struct metadata_breaker breaker = { 0 };
    uint64_t now_ms = 1000, rest_ms = METADATA_REST_MS;
    (void)state;

    fail_times(&breaker, METADATA_FAILURES, now_ms);
    for (uint32_t i = 0; i < 10; i++) {
        now_ms += rest_ms;
        assert_true(metadata_breaker_asks(&breaker, now_ms));
        assert_false(metadata_breaker_asks(&breaker, now_ms)); /* One alone. */
        metadata_breaker_failed(&breaker, now_ms);
        rest_ms = rest_ms * 2 > METADATA_REST_MS_MAX ? METADATA_REST_MS_MAX : rest_ms * 2;
        assert_false(metadata_breaker_asks(&breaker, now_ms + rest_ms - 1));
    }
    assert_true(metadata_breaker_asks(&breaker, now_ms + rest_ms));
    metadata_breaker_succeeded(&breaker);
    assert_false(metadata_breaker_is_open(&breaker));
    assert_true(metadata_breaker_asks(&breaker, now_ms + rest_ms));
}

static void what_was_under_way_does_not_lengthen_the_rest(void **state)
{
    struct metadata_breaker breaker = { 0 };
    (void)state;

    fail_times(&breaker, METADATA_FAILURES, 1000);
    for (uint32_t i = 0; i < 4; i++)
        metadata_breaker_failed(&breaker, 1500);
    assert_true(metadata_breaker_asks(&breaker, 1000 + METADATA_REST_MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_in_a_row_make_it_rest),
        cmocka_unit_test(one_request_tries_and_the_rest_doubles),
        cmocka_unit_test(what_was_under_way_does_not_lengthen_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
