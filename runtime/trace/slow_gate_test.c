#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/trace/slow_gate.h"

#define MS 1000000ull

static void only_what_is_slow_passes(void **state)
{
    struct slow_gate gate = { .slow_ns = 100 * MS };
    struct slow_gate never = { 0 };
    uint32_t withheld = 7;

    (void)state;
    assert_false(slow_gate_pass(&gate, 100 * MS - 1, 5 * MS, &withheld));
    assert_true(slow_gate_pass(&gate, 100 * MS, 5 * MS, &withheld));
    assert_int_equal(withheld, 0);
    assert_false(slow_gate_pass(&never, UINT64_MAX, 5 * MS, &withheld));
}

static void a_flood_is_cut_and_counted_in_the_next_line(void **state)
{
    struct slow_gate gate = { .slow_ns = 1 };
    uint32_t withheld, told = 0;

    (void)state;
    for (uint32_t i = 0; i < SLOW_LINES_PER_S + 5; i++)
        told += slow_gate_pass(&gate, MS, 5 * MS + i, &withheld);
    assert_int_equal(told, SLOW_LINES_PER_S);
    assert_false(slow_gate_pass(&gate, MS, 1004 * MS, &withheld));
    assert_true(slow_gate_pass(&gate, MS, 1005 * MS, &withheld));
    assert_int_equal(withheld, 6);
    assert_true(slow_gate_pass(&gate, MS, 1006 * MS, &withheld));
    assert_int_equal(withheld, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_slow_passes),
        cmocka_unit_test(a_flood_is_cut_and_counted_in_the_next_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
