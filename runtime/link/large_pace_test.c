#include "runtime/link/large_pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MS    1000000u
#define BURST (LARGE_BURST_NS / MS)

static void a_lone_answer_waits_for_nothing(void **state)
{
    struct large_pace pace = { 0 };

    (void)state;
    assert_int_equal(large_pace_wait_ms(&pace, 10 * MS), 0);
    large_pace_spend(&pace, 10 * MS, BURST * MS);
    assert_int_equal(large_pace_wait_ms(&pace, 10 * MS), 0);
    large_pace_spend(&pace, 1000 * MS, BURST * MS); /* Nor does the next, much later. */
    assert_int_equal(large_pace_wait_ms(&pace, 1000 * MS), 0);
}

/* A millisecond each, one after the other: in the end as much time passes as they took. */
static void many_have_half_of_the_time(void **state)
{
    struct large_pace pace = { 0 };
    uint64_t now_ms = 10, worked_ms = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        now_ms += 1;
        worked_ms += 1;
        large_pace_spend(&pace, now_ms * MS, MS);
        now_ms += large_pace_wait_ms(&pace, now_ms * MS);
        assert_int_equal(large_pace_wait_ms(&pace, now_ms * MS), 0);
    }
    assert_in_range(now_ms - 10, 2 * worked_ms - BURST, 2 * worked_ms);
}

/* Small parts count as much as the whole. */
static void parts_add_up(void **state)
{
    struct large_pace pace = { 0 };

    (void)state;
    for (uint64_t i = 1; i <= 100; i++)
        large_pace_spend(&pace, 10 * MS + i * MS / 10, MS / 10);
    assert_int_equal(large_pace_wait_ms(&pace, 20 * MS), 10 - BURST);
}

static void a_pause_has_its_bound(void **state)
{
    struct large_pace pace = { 0 };

    (void)state;
    large_pace_spend(&pace, 10 * MS, UINT64_MAX);
    assert_int_equal(large_pace_wait_ms(&pace, 10 * MS), LARGE_PAUSE_NS_MAX / MS);
    large_pace_spend(&pace, 11 * MS, 49 * MS);
    assert_int_equal(large_pace_wait_ms(&pace, 11 * MS), LARGE_PAUSE_NS_MAX / MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lone_answer_waits_for_nothing),
        cmocka_unit_test(many_have_half_of_the_time),
        cmocka_unit_test(parts_add_up),
        cmocka_unit_test(a_pause_has_its_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
