#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "router/core/txn_read.h"

static void one_player_is_read_once(void **state)
{
    struct txn_read reading;

    (void)state;
    txn_read_init(&reading, 1);
    assert_int_equal(txn_read_take(&reading, 0, 7), TXN_READ_ANSWER);
}

static void two_rounds_that_agree_are_answered(void **state)
{
    struct txn_read reading;

    (void)state;
    txn_read_init(&reading, 2);
    assert_int_equal(txn_read_take(&reading, 1, 4), TXN_READ_WAIT);
    assert_int_equal(txn_read_take(&reading, 0, 3), TXN_READ_AGAIN);
    assert_int_equal(txn_read_take(&reading, 0, 3), TXN_READ_WAIT);
    assert_int_equal(txn_read_take(&reading, 1, 4), TXN_READ_ANSWER);
}

static void a_player_that_changed_is_waited_out(void **state)
{
    struct txn_read reading;

    (void)state;
    txn_read_init(&reading, 2);
    (void)txn_read_take(&reading, 0, 3);
    assert_int_equal(txn_read_take(&reading, 1, 4), TXN_READ_AGAIN);
    (void)txn_read_take(&reading, 0, 5);
    assert_int_equal(txn_read_take(&reading, 1, 4), TXN_READ_AGAIN);
    (void)txn_read_take(&reading, 0, 5); /* As the round before, not as the first. */
    assert_int_equal(txn_read_take(&reading, 1, 4), TXN_READ_ANSWER);
}

static void a_change_in_any_place_counts(void **state)
{
    (void)state;
    for (uint32_t changed = 0; changed < TXN_READ_PLAYERS_MAX; changed++) {
        struct txn_read reading;
        enum txn_read_next next = TXN_READ_WAIT;
        txn_read_init(&reading, TXN_READ_PLAYERS_MAX);
        for (uint32_t i = 0; i < TXN_READ_PLAYERS_MAX; i++)
            next = txn_read_take(&reading, i, 1);
        assert_int_equal(next, TXN_READ_AGAIN);
        for (uint32_t i = 0; i < TXN_READ_PLAYERS_MAX; i++)
            next = txn_read_take(&reading, i, i == changed ? 2 : 1);
        assert_int_equal(next, TXN_READ_AGAIN);
    }
}

static void players_that_never_rest_are_busy(void **state)
{
    struct txn_read reading;
    enum txn_read_next next = TXN_READ_WAIT;

    (void)state;
    txn_read_init(&reading, 2);
    for (uint32_t round = 1; round <= TXN_READ_ROUNDS_MAX; round++) {
        (void)txn_read_take(&reading, 0, round);
        next = txn_read_take(&reading, 1, 1);
        assert_int_equal(next, round < TXN_READ_ROUNDS_MAX ? TXN_READ_AGAIN : TXN_READ_BUSY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_player_is_read_once),
        cmocka_unit_test(two_rounds_that_agree_are_answered),
        cmocka_unit_test(a_player_that_changed_is_waited_out),
        cmocka_unit_test(a_change_in_any_place_counts),
        cmocka_unit_test(players_that_never_rest_are_busy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
