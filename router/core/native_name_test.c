#include "router/core/native_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/cluster/caller_name.h"

static struct arena arena;

static int tear_down(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

static void a_certificate_s_name_stands_behind_cert(void **state)
{
    (void)state;
    assert_string_equal(native_name(&arena, "arena-7.eu_1", false), "cert:arena-7.eu_1");
}

/* Its certificate proves no name: what it says must not pass for another's. */
static void a_name_that_is_not_proven_is_told_apart(void **state)
{
    (void)state;
    assert_string_equal(native_name(&arena, "arena-7", true), "cert:any:arena-7");
    assert_string_equal(native_name(&arena, "any:arena-7", false), "cert:any_arena-7");
}

static void what_no_ledger_may_hold_becomes_underscores(void **state)
{
    static const char odd[] = "a b/c\xc3\xa4\n'";

    (void)state;
    assert_string_equal(native_name(&arena, odd, false), "cert:a_b_c____");
    assert_true(caller_name_is_good(slice_from_text(native_name(&arena, odd, false))));
    assert_string_equal(native_name(&arena, "", false), "cert:");
}

static void a_long_name_ends_in_its_hash(void **state)
{
    char long_name[65], other[65];

    (void)state;
    memset(long_name, 'n', 64);
    long_name[64] = 0;
    memcpy(other, long_name, sizeof other);
    other[63] = 'm';
    const char *one = native_name(&arena, long_name, false);
    const char *two = native_name(&arena, other, false);
    assert_int_equal(strlen(one), CALLER_NAME_BYTES_MAX);
    assert_true(caller_name_is_good(slice_from_text(one)));
    assert_string_not_equal(one, two);
    assert_memory_equal(one, two, CALLER_NAME_BYTES_MAX - 16);
    assert_string_equal(one, native_name(&arena, long_name, false));
    long_name[CALLER_NAME_BYTES_MAX - 5] = 0; /* The longest that fits whole. */
    assert_int_equal(strlen(native_name(&arena, long_name, false)), CALLER_NAME_BYTES_MAX);
    assert_string_equal(native_name(&arena, long_name, false) + 5, long_name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_certificate_s_name_stands_behind_cert),
        cmocka_unit_test(a_name_that_is_not_proven_is_told_apart),
        cmocka_unit_test(what_no_ledger_may_hold_becomes_underscores),
        cmocka_unit_test(a_long_name_ends_in_its_hash),
    };

    return cmocka_run_group_tests(tests, NULL, tear_down);
}
