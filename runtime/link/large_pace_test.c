#include "runtime/link/large_pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MS 1000000u

static void all_else_has_as_much_time_as_a_large_answer_took(void **state)
{
    struct large_pace pace = { 0 };

    (void)state;
    assert_int_equal(large_pace_wait_ms(&pace, 10 * MS), 0);
    large_pace_spend(&pace, 10 * MS, 3 * MS);
    assert_int_equal(large_pace_wait_ms(&pace, 10 * MS), 3);
    assert_int_equal(large_pace_wait_ms(&pace, 12 * MS + 1), 1);
    assert_int_equal(large_pace_wait_ms(&pace, 13 * MS), 0);
    large_pace_spend(&pace, 20 * MS, 1);
    assert_int_equal(large_pace_wait_ms(&pace, 20 * MS), 1);
}

/* Those that came together over several links are waited for together. */
static void pauses_add_up(void **state)
{
    struct large_pace pace = { 0 };

    (void)state;
    large_pace_spend(&pace, 10 * MS, 3 * MS);
    large_pace_spend(&pace, 11 * MS, 4 * MS);
    assert_int_equal(large_pace_wait_ms(&pace, 11 * MS), 6);
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
        cmocka_unit_test(all_else_has_as_much_time_as_a_large_answer_took),
        cmocka_unit_test(pauses_add_up),
        cmocka_unit_test(a_pause_has_its_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
