#include "runtime/memory/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MIB (1024ull * 1024)

static void this_machine_has_memory(void **state)
{
    (void)state;
    assert_true(memory_machine_bytes() > 16 * MIB);
}

static void the_share_is_what_is_configured_or_a_sixteenth(void **state)
{
    uint64_t sixteenth = memory_machine_bytes() / 16;

    (void)state;
    assert_int_equal(memory_share(5 * MIB), 5 * MIB);
    assert_true(memory_share(0) >= 16 * MIB);
    if (sixteenth >= 16 * MIB && sixteenth <= 2048 * MIB)
        assert_int_equal(memory_share(0), sixteenth);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(this_machine_has_memory),
        cmocka_unit_test(the_share_is_what_is_configured_or_a_sixteenth),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
