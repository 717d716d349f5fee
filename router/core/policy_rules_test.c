#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

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

/* ---- currencies that go ---- */
struct two {
    Holdfast__V1__CurrencyPolicy currencies[2], *list[2];
    Holdfast__V1__Policy policy;
};

static void two_make(struct two *two, const char *first, const char *second)
{
    two->policy = (Holdfast__V1__Policy)HOLDFAST__V1__POLICY__INIT;
    for (int i = 0; i < 2; i++) {
        two->currencies[i] = (Holdfast__V1__CurrencyPolicy)HOLDFAST__V1__CURRENCY_POLICY__INIT;
        two->currencies[i].name = (char *)(uintptr_t)(i == 0 ? first : second);
        two->list[i] = &two->currencies[i];
    }
    two->policy.currencies = two->list;
    two->policy.n_currencies = first == NULL ? 0 : second == NULL ? 1 : 2;
}

/* `field` NULL: it is taken. */
static void assert_drops(const struct two *next, const struct two *current, const char *drop,
                         const char *field, const char *value)
{
    struct arena arena = { 0 };
    Holdfast__V1__ErrorDetail detail;
    char *names[] = { (char *)(uintptr_t)drop };
    const struct policy_drops drops = { names, drop != NULL ? 1 : 0 };
    err e = policy_check_drops(&next->policy, current != NULL ? &current->policy : NULL, &drops,
                               &arena, &detail);

    assert_int_equal(e, field == NULL ? ERR_OK : ERR_INVALID);
    if (field != NULL) {
        assert_int_equal(detail.code, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INVALID_ARGUMENT);
        assert_string_equal(detail.field, field);
        assert_string_equal(detail.value, value);
        assert_non_null(strstr(detail.message, value));
    }
    arena_deinit(&arena);
}

static void a_currency_goes_only_by_its_name(void **state)
{
    struct two none, gold, both, gems;
    (void)state;

    two_make(&none, NULL, NULL);
    two_make(&gold, "gold", NULL);
    two_make(&gems, "gems", NULL);
    two_make(&both, "gold", "gems");
    assert_drops(&gold, NULL, NULL, NULL, NULL);
    assert_drops(&both, &gold, NULL, NULL, NULL);
    assert_drops(&both, &both, NULL, NULL, NULL);
    assert_drops(&none, &gold, NULL, "policy.currencies", "gold");
    assert_drops(&gems, &gold, NULL, "policy.currencies", "gold");
    assert_drops(&gold, &both, "gems", NULL, NULL);
    assert_drops(&none, &both, "gems", "policy.currencies", "gold");
    assert_drops(&gold, &gold, "gold", "drop_currencies[0]", "gold"); /* It stays. */
    assert_drops(&gold, &gold, "gems", "drop_currencies[0]", "gems"); /* There is none. */
    assert_drops(&gold, NULL, "gems", "drop_currencies[0]", "gems");
}

static void the_drops_are_few(void **state)
{
    struct arena arena = { 0 };
    struct two gold;
    Holdfast__V1__ErrorDetail detail;
    char *names[65];
    (void)state;

    for (int i = 0; i < 65; i++)
        names[i] = (char *)(uintptr_t) "gems";
    two_make(&gold, "gold", NULL);
    const struct policy_drops drops = { names, 65 };
    assert_int_equal(policy_check_drops(&gold.policy, &gold.policy, &drops, &arena, &detail),
                     ERR_INVALID);
    assert_string_equal(detail.field, "drop_currencies");
    assert_string_equal(detail.limit, "at most 64");
    arena_deinit(&arena);
}

/* ---- bounds and defaults ---- */
/* A policy that is complete with these currencies. */
static void policy_make(Holdfast__V1__Policy *ret_policy, Holdfast__V1__CurrencyPolicy *currency,
                        Holdfast__V1__CurrencyPolicy **list)
{
    *ret_policy = (Holdfast__V1__Policy)HOLDFAST__V1__POLICY__INIT;
    *currency = (Holdfast__V1__CurrencyPolicy)HOLDFAST__V1__CURRENCY_POLICY__INIT;
    currency->name = (char *)(uintptr_t) "gold";
    list[0] = currency;
    ret_policy->n_currencies = 1;
    ret_policy->currencies = list;
}

static void assert_taken(const Holdfast__V1__Policy *policy, Holdfast__V1__Policy *ret_complete)
{
    static struct arena arena;
    Holdfast__V1__ErrorDetail detail;
    Holdfast__V1__Policy *complete = NULL;

    arena_deinit(&arena); /* The last one's. */
    arena = (struct arena){ 0 };
    assert_int_equal(policy_complete(policy, &arena, &complete, &detail), ERR_OK);
    *ret_complete = *complete;
}

static void assert_refused(const Holdfast__V1__Policy *policy, const char *field, const char *limit,
                           const char *value)
{
    struct arena arena = { 0 };
    Holdfast__V1__ErrorDetail detail;
    Holdfast__V1__Policy *complete = NULL;

    assert_int_equal(policy_complete(policy, &arena, &complete, &detail), ERR_INVALID);
    assert_null(complete);
    assert_string_equal(detail.field, field);
    assert_string_equal(detail.limit, limit);
    assert_string_equal(detail.value, value);
    arena_deinit(&arena);
}

static void what_is_not_said_has_its_default_and_what_is_said_stays(void **state)
{
    Holdfast__V1__Policy policy, complete;
    Holdfast__V1__CurrencyPolicy currency, *list[1];
    (void)state;

    policy_make(&policy, &currency, list);
    policy.version = 7;
    assert_taken(&policy, &complete);
    assert_int_equal(complete.version, 7);
    assert_int_equal(complete.operation_window_ms, 86400000);
    assert_int_equal(complete.operations_max, 2000000);
    assert_int_equal(complete.items_max, 10000);
    assert_int_equal(complete.mailbox_max, 1000);
    assert_int_equal(complete.n_currencies, 1);
    assert_string_equal(complete.currencies[0]->name, "gold");
    assert_true(complete.currencies[0]->max_balance == 9007199254740991);
    assert_true(complete.currencies[0]->min_balance == 0);
    assert_true(currency.max_balance == 0); /* The caller's own is as it was. */
    policy.operation_window_ms = 900001;
    policy.operations_max = 1000;
    policy.items_max = 2;
    policy.mailbox_max = 3;
    currency.max_balance = 1;
    currency.min_balance = -1;
    assert_taken(&policy, &complete);
    assert_int_equal(complete.operation_window_ms, 900001);
    assert_int_equal(complete.operations_max, 1000);
    assert_int_equal(complete.items_max, 2);
    assert_int_equal(complete.mailbox_max, 3);
    assert_true(complete.currencies[0]->max_balance == 1);
    assert_true(complete.currencies[0]->min_balance == -1);
}

static void the_window_of_operations_has_bounds(void **state)
{
    const char *limit = "900000 to 604800000";
    Holdfast__V1__Policy policy = HOLDFAST__V1__POLICY__INIT, complete;
    (void)state;

    policy.operation_window_ms = 900000;
    assert_taken(&policy, &complete);
    policy.operation_window_ms = 604800000;
    assert_taken(&policy, &complete);
    policy.operation_window_ms = 899999;
    assert_refused(&policy, "policy.operation_window_ms", limit, "899999");
    policy.operation_window_ms = 604800001;
    assert_refused(&policy, "policy.operation_window_ms", limit, "604800001");
    assert_refused(NULL, "policy", "a policy", "");
}

/* Each shard checks them again: a stored policy that every shard refuses would be tried for ever.
 */
static void what_no_shard_would_take_is_not_stored(void **state)
{
    Holdfast__V1__Policy policy = HOLDFAST__V1__POLICY__INIT, complete;
    (void)state;

    policy.operations_max = 999;
    assert_refused(&policy, "policy.operations_max", "1000 to 100000000", "999");
    policy.operations_max = 100000001;
    assert_refused(&policy, "policy.operations_max", "1000 to 100000000", "100000001");
    policy.operations_max = 100000000;
    assert_taken(&policy, &complete);
    policy.items_max = 1000001;
    assert_refused(&policy, "policy.items_max", "1 to 1000000", "1000001");
    policy.items_max = 1000000;
    assert_taken(&policy, &complete);
    policy.mailbox_max = 100001;
    assert_refused(&policy, "policy.mailbox_max", "1 to 100000", "100001");
    policy.mailbox_max = 100000;
    assert_taken(&policy, &complete);
}

static void a_currencys_balances_have_bounds(void **state)
{
    const int64_t most = 9007199254740991;
    Holdfast__V1__Policy policy, complete;
    Holdfast__V1__CurrencyPolicy currency, *list[1];
    (void)state;

    policy_make(&policy, &currency, list);
    currency.max_balance = most;
    currency.min_balance = -most;
    assert_taken(&policy, &complete);
    currency.max_balance = most + 1;
    assert_refused(&policy, "policy.currencies[0].max_balance", "0 to 2^53 - 1",
                   "9007199254740992");
    currency.max_balance = -1;
    assert_refused(&policy, "policy.currencies[0].max_balance", "0 to 2^53 - 1", "-1");
    currency.max_balance = 0;
    currency.min_balance = 1;
    assert_refused(&policy, "policy.currencies[0].min_balance", "-(2^53 - 1) to 0", "1");
    currency.min_balance = -most - 1;
    assert_refused(&policy, "policy.currencies[0].min_balance", "-(2^53 - 1) to 0",
                   "-9007199254740992");
}

static void assert_name(const char *name, bool taken)
{
    Holdfast__V1__Policy policy, complete;
    Holdfast__V1__CurrencyPolicy currency, *list[1];

    policy_make(&policy, &currency, list);
    currency.name = (char *)(uintptr_t)name;
    if (taken)
        assert_taken(&policy, &complete);
    else
        assert_refused(&policy, "policy.currencies[0].name", "1 to 32 of [a-z0-9_]", name);
}

static void a_currencys_name_has_a_form(void **state)
{
    (void)state;
    assert_name("g", true);
    assert_name("abcdefghijklmnopqrstuvwxyz_01234", true);
    assert_name("abcdefghijklmnopqrstuvwxyz_012345", false);
    assert_name("56789", true);
    assert_name("", false);
    assert_name("Gold", false);
    assert_name("go ld", false);
    assert_name("gold-", false);
}

static void currencies_are_few_and_each_is_named_once(void **state)
{
    Holdfast__V1__Policy policy = HOLDFAST__V1__POLICY__INIT, complete;
    Holdfast__V1__CurrencyPolicy currencies[65], *list[65];
    char names[65][16];
    (void)state;

    for (int i = 0; i < 65; i++) {
        snprintf(names[i], sizeof names[i], "c%d", i);
        currencies[i] = (Holdfast__V1__CurrencyPolicy)HOLDFAST__V1__CURRENCY_POLICY__INIT;
        currencies[i].name = names[i];
        list[i] = &currencies[i];
    }
    policy.currencies = list;
    policy.n_currencies = 64;
    assert_taken(&policy, &complete);
    assert_int_equal(complete.n_currencies, 64);
    for (int i = 0; i < 64; i++)
        assert_string_equal(complete.currencies[i]->name, names[i]);
    policy.n_currencies = 65;
    assert_refused(&policy, "policy.currencies", "at most 64", "65");
    policy.n_currencies = 3;
    currencies[2].name = names[0];
    assert_refused(&policy, "policy.currencies[2].name", "each name once", "c0");
    currencies[2].name = names[1];
    assert_refused(&policy, "policy.currencies[2].name", "each name once", "c1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_conflict_tells_the_version_that_stands),
        cmocka_unit_test(the_next_version_is_taken),
        cmocka_unit_test(a_currency_goes_only_by_its_name),
        cmocka_unit_test(the_drops_are_few),
        cmocka_unit_test(what_is_not_said_has_its_default_and_what_is_said_stays),
        cmocka_unit_test(the_window_of_operations_has_bounds),
        cmocka_unit_test(what_no_shard_would_take_is_not_stored),
        cmocka_unit_test(a_currencys_balances_have_bounds),
        cmocka_unit_test(a_currencys_name_has_a_form),
        cmocka_unit_test(currencies_are_few_and_each_is_named_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
