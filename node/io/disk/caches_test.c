#include "node/io/disk/caches.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define GIB (1024ull * 1024 * 1024)
#define MIB (1024ull * 1024)

static void what_is_configured_holds(void **state)
{
    struct caches caches = caches_of(5 * MIB, 3 * MIB, 64 * GIB);

    (void)state;
    assert_int_equal(caches.row_bytes, 5 * MIB);
    assert_int_equal(caches.block_bytes, 3 * MIB);
}

static void the_machine_decides_otherwise(void **state)
{
    struct caches caches = caches_of(0, 0, 32 * GIB);

    (void)state;
    assert_int_equal(caches.row_bytes, 2 * GIB);
    assert_int_equal(caches.block_bytes, GIB / 2);
}

static void neither_too_little_nor_everything(void **state)
{
    struct caches small = caches_of(0, 0, GIB);
    struct caches large = caches_of(0, 0, 4096 * GIB);

    (void)state;
    assert_int_equal(small.row_bytes, 256 * MIB);
    assert_int_equal(small.block_bytes, 64 * MIB);
    assert_int_equal(large.row_bytes, 16 * GIB);
    assert_int_equal(large.block_bytes, 4 * GIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_configured_holds),
        cmocka_unit_test(the_machine_decides_otherwise),
        cmocka_unit_test(neither_too_little_nor_everything),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
