/* How fast a scrub goes, and when the next one is due. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "node/io/disk/scrub_pace.h"

#define KIB    UINT64_C(1024)
#define MIB    (1024 * KIB)
#define SECOND UINT64_C(1000000) /* In us. */
#define MINUTE UINT64_C(60000)   /* In ms. */
#define DAY    (1440 * MINUTE)

static void a_step_waits_for_what_is_left_of_its_time(void **state)
{
    (void)state;
    assert_int_equal(scrub_pace_wait_us(1 * MIB, 0, 8 * MIB), SECOND / 8);
    assert_int_equal(scrub_pace_wait_us(1 * MIB, 25000, 8 * MIB), SECOND / 8 - 25000);
    assert_int_equal(scrub_pace_wait_us(3 * MIB, 0, 1 * MIB), 3 * SECOND);
    assert_int_equal(scrub_pace_wait_us(0, 0, 8 * MIB), 0);
}

static void a_step_that_was_slow_is_not_made_up_for(void **state)
{
    (void)state;
    assert_int_equal(scrub_pace_wait_us(1 * MIB, SECOND / 8, 8 * MIB), 0);
    assert_int_equal(scrub_pace_wait_us(1 * MIB, 60 * SECOND, 8 * MIB), 0);
    assert_int_equal(scrub_pace_wait_us(1 * MIB, 0, 8 * MIB), SECOND / 8);
}

/* What a second reads, by steps of any size, is the rate. */
static void steps_together_keep_the_rate(void **state)
{
    static const uint64_t rates[] = { 64 * KIB, 1 * MIB, 8 * MIB, 100 * MIB, 1024 * MIB };

    (void)state;
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        uint64_t read = 0, now_us = 0;

        while (read < 100 * rates[i]) {
            uint64_t bytes = scrub_pace_step_bytes(rates[i]);
            uint64_t took_us = now_us % 400; /* Faster than any rate here. */

            read += bytes;
            now_us += took_us + scrub_pace_wait_us(bytes, took_us, rates[i]);
        }
        assert_in_range(now_us, 99 * SECOND, 101 * SECOND);
    }
}

static void no_figure_is_too_large(void **state)
{
    (void)state;
    assert_true(scrub_pace_wait_us(UINT64_MAX, 0, 1) > UINT64_MAX / 2);
    assert_true(scrub_pace_wait_us(UINT64_MAX, SECOND, 1) > UINT64_MAX / 2);
    assert_int_equal(scrub_pace_wait_us(1, UINT64_MAX, 1024 * MIB), 0);
    assert_int_equal(scrub_pace_wait_us(1024 * MIB - 1, 0, 1024 * MIB), SECOND - 1);
}

static void steps_are_bounded(void **state)
{
    (void)state;
    assert_int_equal(scrub_pace_step_bytes(1), SCRUB_STEP_BYTES_MIN);
    assert_int_equal(scrub_pace_step_bytes(64 * KIB), 8 * KIB);
    assert_int_equal(scrub_pace_step_bytes(8 * MIB), SCRUB_STEP_BYTES_MAX);
    assert_int_equal(scrub_pace_step_bytes(UINT64_MAX), SCRUB_STEP_BYTES_MAX);
}

static void the_first_pass_comes_soon_but_not_at_once(void **state)
{
    (void)state;
    assert_int_equal(scrub_pace_first_ms(7 * DAY), 10 * MINUTE);
    assert_int_equal(scrub_pace_first_ms(160 * MINUTE), 10 * MINUTE);
    assert_int_equal(scrub_pace_first_ms(80 * MINUTE), 5 * MINUTE);
    assert_int_equal(scrub_pace_first_ms(1600), 100);
}

static void a_pass_begins_every_period_or_when_the_last_one_is_over(void **state)
{
    (void)state;
    assert_int_equal(scrub_pace_rest_ms(7 * DAY, 2 * DAY), 5 * DAY);
    assert_int_equal(scrub_pace_rest_ms(7 * DAY, 0), 7 * DAY);
    assert_int_equal(scrub_pace_rest_ms(7 * DAY, 7 * DAY), 0);
    assert_int_equal(scrub_pace_rest_ms(7 * DAY, 8 * DAY), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_waits_for_what_is_left_of_its_time),
        cmocka_unit_test(a_step_that_was_slow_is_not_made_up_for),
        cmocka_unit_test(steps_together_keep_the_rate),
        cmocka_unit_test(no_figure_is_too_large),
        cmocka_unit_test(steps_are_bounded),
        cmocka_unit_test(the_first_pass_comes_soon_but_not_at_once),
        cmocka_unit_test(a_pass_begins_every_period_or_when_the_last_one_is_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
