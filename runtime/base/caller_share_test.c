#include "runtime/base/caller_share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* In one slot of the table, all of them. */
#define ALIKE(n) ((uint64_t)(n)*1024u + 7u)

static void what_is_limited_for_each_is_taken_and_given_back(void **state)
{
    struct caller_shares *shares = caller_shares_new();

    (void)state;
    assert_true(caller_share_take(shares, ALIKE(1), 3, 5));
    assert_true(caller_share_take(shares, ALIKE(1), 2, 5));
    assert_false(caller_share_take(shares, ALIKE(1), 1, 5));
    assert_int_equal(caller_share_held(shares, ALIKE(1)), 5);
    for (uint64_t other = 2; other < 6; other++) /* Costs another nothing. */
        assert_true(caller_share_take(shares, ALIKE(other), 5, 5));
    caller_shares_check(shares);
    caller_share_give(shares, ALIKE(1), 4);
    assert_true(caller_share_take(shares, ALIKE(1), 4, 5));
    assert_false(caller_share_take(shares, ALIKE(1), UINT64_MAX, UINT64_MAX));
    assert_false(caller_share_take(shares, ALIKE(1), 1, 4)); /* Of another kind of call. */
    assert_true(caller_share_take(shares, ALIKE(1), 0, 0));
    for (uint64_t name = 5; name > 0; name--)
        caller_share_give(shares, ALIKE(name), 5);
    caller_shares_check(shares);
    assert_int_equal(caller_share_held(shares, ALIKE(1)), 0);
    caller_share_give(shares, ALIKE(1), 0);
    caller_shares_free(shares);
}

static void who_holds_nothing_may_take_more_than_a_share(void **state)
{
    struct caller_shares *shares = caller_shares_new();

    (void)state;
    assert_true(caller_share_take(shares, 1, 100, 5));
    assert_false(caller_share_take(shares, 1, 1, 5));
    caller_share_give(shares, 1, 100);
    assert_true(caller_share_take(shares, 1, 100, 5));
    caller_share_give(shares, 1, 100);
    caller_shares_free(shares);
    caller_shares_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_limited_for_each_is_taken_and_given_back),
        cmocka_unit_test(who_holds_nothing_may_take_more_than_a_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
