#include "runtime/base/budget.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MAX 400000u

static void reads_leave_a_quarter_to_outcomes(void **state)
{
    struct budget budget;

    (void)state;
    budget_init(&budget, MAX);
    assert_true(budget_reserve(&budget, BUDGET_READ, 200000));
    assert_true(budget_reserve(&budget, BUDGET_READ, 100000));
    assert_false(budget_has_room(&budget, BUDGET_READ, 5000));
    assert_false(budget_reserve(&budget, BUDGET_READ, 5000));
    assert_int_equal(budget_refused(&budget), 1);
    assert_int_equal(budget_held(&budget), 300000);
    assert_true(budget_reserve(&budget, BUDGET_OUTCOME, 100000));
    assert_false(budget_reserve(&budget, BUDGET_OUTCOME, 5000));
    budget_give(&budget, 400000);
    budget_deinit(&budget);
}

static void what_is_small_is_never_refused_and_is_counted(void **state)
{
    struct budget budget;

    (void)state;
    budget_init(&budget, MAX);
    budget_take(&budget, 2 * MAX);
    assert_true(budget_reserve(&budget, BUDGET_READ, BUDGET_SMALL_BYTES));
    assert_false(budget_reserve(&budget, BUDGET_READ, BUDGET_SMALL_BYTES + 1));
    assert_int_equal(budget_held(&budget), 2 * MAX + BUDGET_SMALL_BYTES);
    budget_give(&budget, 2 * MAX + BUDGET_SMALL_BYTES);
    budget_deinit(&budget);
}

static void one_that_is_larger_than_the_budget_passes_alone(void **state)
{
    struct budget budget;

    (void)state;
    budget_init(&budget, MAX);
    assert_true(budget_reserve(&budget, BUDGET_READ, 3 * MAX));
    assert_false(budget_reserve(&budget, BUDGET_READ, 3 * MAX));
    budget_give(&budget, 3 * MAX);
    assert_true(budget_reserve(&budget, BUDGET_READ, 3 * MAX));
    budget_give(&budget, 3 * MAX);
    budget_deinit(&budget);
}

static void commit_holds_what_there_is_instead_of_what_was_reserved(void **state)
{
    struct budget budget;

    (void)state;
    budget_init(&budget, MAX);
    assert_true(budget_reserve(&budget, BUDGET_READ, 50000));
    budget_commit(&budget, 50000, 20000);
    assert_int_equal(budget_held(&budget), 20000);
    budget_commit(&budget, 20000, 70000);
    assert_int_equal(budget_held(&budget), 70000);
    budget_give(&budget, 70000);
    budget_deinit(&budget);
}

static void without_a_limit_it_only_counts(void **state)
{
    struct budget budget;

    (void)state;
    budget_init(&budget, 0);
    assert_true(budget_reserve(&budget, BUDGET_READ, UINT32_MAX));
    assert_true(budget_reserve(&budget, BUDGET_READ, UINT32_MAX));
    assert_int_equal(budget_held(&budget), 2ull * UINT32_MAX);
    budget_give(&budget, 2ull * UINT32_MAX);
    budget_deinit(&budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_leave_a_quarter_to_outcomes),
        cmocka_unit_test(what_is_small_is_never_refused_and_is_counted),
        cmocka_unit_test(one_that_is_larger_than_the_budget_passes_alone),
        cmocka_unit_test(commit_holds_what_there_is_instead_of_what_was_reserved),
        cmocka_unit_test(without_a_limit_it_only_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
