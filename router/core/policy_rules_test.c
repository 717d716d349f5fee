#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "router/core/policy_rules.h"

static void assert_conflict(const Holdfast__V1__Policy *next, const Holdfast__V1__Policy *current,
                            const char *limit, uint64_t stands)
{
    struct arena arena = { 0 };
    Holdfast__V1__ErrorDetail detail;

    assert_int_equal(policy_check_successor(next, current, &arena, &detail), ERR_INVALID);
    assert_int_equal(detail.code, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_VERSION_CONFLICT);
    assert_string_equal(detail.field, "policy.version");
    assert_string_equal(detail.limit, limit);
    assert_int_equal(detail.about->fact_case, HOLDFAST__V1__ERROR_DETAIL__ABOUT__FACT_VERSION);
    assert_int_equal(detail.about->version->current, stands);
    arena_deinit(&arena);
}

static void a_conflict_tells_the_version_that_stands(void **state)
{
    Holdfast__V1__Policy next = HOLDFAST__V1__POLICY__INIT;
    Holdfast__V1__Policy current = HOLDFAST__V1__POLICY__INIT;
    (void)state;

    current.version = 7;
    next.version = 7;
    assert_conflict(&next, &current, "8", 7);
    next.version = 9;
    assert_conflict(&next, &current, "8", 7);
    assert_conflict(&next, NULL, "1", 0);
}

static void the_next_version_is_taken(void **state)
{
    struct arena arena = { 0 };
    Holdfast__V1__Policy next = HOLDFAST__V1__POLICY__INIT;
    Holdfast__V1__Policy current = HOLDFAST__V1__POLICY__INIT;
    Holdfast__V1__ErrorDetail detail;
    (void)state;

    next.version = 1;
    assert_int_equal(policy_check_successor(&next, NULL, &arena, &detail), ERR_OK);
    current.version = 1;
    next.version = 2;
    assert_int_equal(policy_check_successor(&next, &current, &arena, &detail), ERR_OK);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_conflict_tells_the_version_that_stands),
        cmocka_unit_test(the_next_version_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
