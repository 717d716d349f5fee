#include "runtime/base/log_gate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void one_line_a_minute_passes_and_tells_of_the_rest(void **state)
{
    struct log_gate gate = { 0 };
    uint64_t more = 9;

    (void)state;
    assert_true(log_gate_pass(&gate, 0, &more));
    assert_int_equal(more, 0);
    for (uint64_t now_ms = 0; now_ms < LOG_GATE_PERIOD_MS; now_ms += 1000)
        assert_false(log_gate_pass(&gate, now_ms, &more));
    assert_true(log_gate_pass(&gate, LOG_GATE_PERIOD_MS, &more));
    assert_int_equal(more, 60);
    assert_false(log_gate_pass(&gate, LOG_GATE_PERIOD_MS + 1, &more));
    assert_true(log_gate_pass(&gate, 3 * LOG_GATE_PERIOD_MS, &more));
    assert_int_equal(more, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_line_a_minute_passes_and_tells_of_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
