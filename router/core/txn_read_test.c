#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "router/core/txn_read.h"

#define DEADLINE_MS 2000u

static void begin(struct txn_read *reading, uint32_t count)
{
    txn_read_init(reading, count, 1, 0, DEADLINE_MS);
}

/* Settled at this version; the owner would hold writes back, and does if it was asked. */
static enum txn_read_next rest_at(struct txn_read *reading, uint32_t place, uint64_t version)
{
    const struct txn_read_answer answer = {
        .settled = true, .version = version, .held = txn_read_ask(reading).hold, .may_hold = true
    };

    return txn_read_take(reading, place, &answer, 10);
}

static enum txn_read_next held_by(struct txn_read *reading, uint32_t place, uint64_t seq)
{
    const struct txn_read_answer answer = { .holder = { 1, 2, seq },
                                            .held = true,
                                            .may_hold = true };

    return txn_read_take(reading, place, &answer, 10);
}

/* Every look finds bob changed. */
static void look_in_vain(struct txn_read *reading)
{
    enum txn_read_next next = TXN_READ_AGAIN;

    for (uint32_t round = 1; reading->phase == TXN_READ_LOOK; round++) {
        assert_int_equal(next, TXN_READ_AGAIN);
        assert_true(txn_read_ask(reading).wait);
        (void)rest_at(reading, 0, 1);
        next = rest_at(reading, 1, round);
    }
    assert_int_equal(next, TXN_READ_AGAIN);
    assert_int_equal(reading->total, TXN_READ_LOOKS + 1);
}

static void one_player_is_read_once(void **state)
{
    struct txn_read reading;

    (void)state;
    begin(&reading, 1);
    assert_int_equal(rest_at(&reading, 0, 7), TXN_READ_ANSWER);
}

static void two_rounds_that_agree_are_answered(void **state)
{
    struct txn_read reading;

    (void)state;
    begin(&reading, 2);
    assert_int_equal(rest_at(&reading, 1, 4), TXN_READ_WAIT);
    assert_int_equal(rest_at(&reading, 0, 3), TXN_READ_AGAIN);
    assert_int_equal(rest_at(&reading, 0, 3), TXN_READ_WAIT);
    assert_int_equal(rest_at(&reading, 1, 4), TXN_READ_ANSWER);
    assert_false(reading.release);
}

static void a_player_that_changed_is_waited_out(void **state)
{
    struct txn_read reading;

    (void)state;
    begin(&reading, 2);
    (void)rest_at(&reading, 0, 3);
    assert_int_equal(rest_at(&reading, 1, 4), TXN_READ_AGAIN);
    (void)rest_at(&reading, 0, 5);
    assert_int_equal(rest_at(&reading, 1, 4), TXN_READ_AGAIN);
    (void)rest_at(&reading, 0, 5); /* As the round before, not as the first. */
    assert_int_equal(rest_at(&reading, 1, 4), TXN_READ_ANSWER);
}

static void a_change_in_any_place_counts(void **state)
{
    (void)state;
    for (uint32_t changed = 0; changed < TXN_READ_PLAYERS_MAX; changed++) {
        struct txn_read reading;
        enum txn_read_next next = TXN_READ_WAIT;
        begin(&reading, TXN_READ_PLAYERS_MAX);
        for (uint32_t i = 0; i < TXN_READ_PLAYERS_MAX; i++)
            next = rest_at(&reading, i, 1);
        assert_int_equal(next, TXN_READ_AGAIN);
        for (uint32_t i = 0; i < TXN_READ_PLAYERS_MAX; i++)
            next = rest_at(&reading, i, i == changed ? 2 : 1);
        assert_int_equal(next, TXN_READ_AGAIN);
    }
}

/* A round in which somebody was held says nothing, so neither does one that equals it. */
static void a_round_with_a_held_player_agrees_with_none(void **state)
{
    struct txn_read reading;

    (void)state;
    begin(&reading, 2);
    look_in_vain(&reading);
    (void)rest_at(&reading, 0, 1);
    assert_int_equal(held_by(&reading, 1, 7), TXN_READ_AGAIN);
    (void)rest_at(&reading, 0, 1);
    assert_int_equal(rest_at(&reading, 1, reading.versions[1]), TXN_READ_AGAIN);
    (void)rest_at(&reading, 0, 1);
    assert_int_equal(rest_at(&reading, 1, reading.versions[1]), TXN_READ_ANSWER);
}

static void among_steady_writes_it_ends_after_a_few_rounds(void **state)
{
    struct txn_read reading;

    (void)state;
    begin(&reading, 2);
    look_in_vain(&reading);
    assert_int_equal(reading.phase, TXN_READ_REGISTER);
    assert_true(txn_read_ask(&reading).hold);
    assert_false(txn_read_ask(&reading).wait); /* Whom they wait for must be known first. */
    assert_int_equal(held_by(&reading, 0, 7), TXN_READ_WAIT);
    assert_int_equal(held_by(&reading, 1, 7), TXN_READ_AGAIN);
    assert_int_equal(reading.phase, TXN_READ_DRAIN);
    struct txn_read_ask ask = txn_read_ask(&reading);
    assert_true(ask.wait && ask.hold);
    assert_int_equal(ask.pass_count, 1); /* Both hold it. */
    assert_int_equal(ask.pass[0].seq, 7);
    (void)rest_at(&reading, 0, 8);
    assert_int_equal(rest_at(&reading, 1, 8), TXN_READ_AGAIN);
    assert_int_equal(reading.phase, TXN_READ_SETTLE);
    assert_int_equal(txn_read_ask(&reading).pass_count, 0);
    (void)rest_at(&reading, 0, 8);
    assert_int_equal(rest_at(&reading, 1, 9), TXN_READ_AGAIN);
    (void)rest_at(&reading, 0, 8);
    assert_int_equal(rest_at(&reading, 1, 9), TXN_READ_ANSWER);
    assert_true(reading.release);
}

static void where_nobody_is_held_nothing_need_drain(void **state)
{
    struct txn_read reading;

    (void)state;
    begin(&reading, 2);
    look_in_vain(&reading);
    (void)rest_at(&reading, 0, 2);
    assert_int_equal(rest_at(&reading, 1, 90), TXN_READ_AGAIN);
    assert_int_equal(reading.phase, TXN_READ_SETTLE);
}

static void a_read_that_may_not_hold_writes_back_lets_go_and_pauses(void **state)
{
    const struct txn_read_answer rests = { .settled = true, .version = 90, .may_hold = false };
    struct txn_read reading;

    (void)state;
    begin(&reading, 2);
    look_in_vain(&reading);
    (void)rest_at(&reading, 0, 2);
    assert_int_equal(txn_read_take(&reading, 1, &rests, 10), TXN_READ_PAUSE);
    assert_in_range(reading.resume_ms, 10 + TXN_READ_PAUSE_MS, 10 + 2 * TXN_READ_PAUSE_MS);
    assert_true(txn_read_ask(&reading).release);
    assert_false(txn_read_ask(&reading).hold);
    (void)rest_at(&reading, 0, 2);
    assert_int_equal(txn_read_take(&reading, 1, &rests, 40), TXN_READ_ANSWER);
}

static void a_player_who_may_not_be_held_is_looked_at_again(void **state)
{
    struct txn_read_answer rests = { .settled = true, .may_hold = false };
    struct txn_read reading;
    enum txn_read_next next = TXN_READ_AGAIN;

    (void)state;
    begin(&reading, 2);
    while (next == TXN_READ_AGAIN) {
        rests.version++;
        (void)rest_at(&reading, 0, 2);
        next = txn_read_take(&reading, 1, &rests, 10);
    }
    assert_int_equal(next, TXN_READ_PAUSE);
    assert_int_equal(reading.phase, TXN_READ_LOOK);
    assert_int_equal(reading.total, TXN_READ_LOOKS + 1);
}

/* However the players change and whatever is turned away: at its deadline it ends. */
static void it_ends_with_its_deadline(void **state)
{
    (void)state;
    for (uint32_t turned_away = 0; turned_away < 2; turned_away++) {
        struct txn_read reading;
        enum txn_read_next next = TXN_READ_AGAIN;
        uint64_t now_ms = 0;
        begin(&reading, 2);
        while (next != TXN_READ_BUSY) {
            struct txn_read_answer answer = { .settled = turned_away == 0,
                                              .version = now_ms,
                                              .held = txn_read_ask(&reading).hold,
                                              .may_hold = true };
            now_ms += 3;
            (void)txn_read_take(&reading, 0, &answer, now_ms);
            answer.version = 1;
            answer.settled = true;
            next = txn_read_take(&reading, 1, &answer, now_ms);
            assert_int_not_equal(next, TXN_READ_ANSWER);
            if (next == TXN_READ_PAUSE)
                now_ms = reading.resume_ms;
        }
        assert_in_range(now_ms, DEADLINE_MS / 2, DEADLINE_MS);
        assert_in_range(reading.total, 10, DEADLINE_MS / 3);
    }
}

static void an_old_read_is_urgent(void **state)
{
    const struct txn_read_answer rests = { .settled = true, .may_hold = true };
    struct txn_read reading;

    (void)state;
    begin(&reading, 2);
    assert_false(txn_read_ask(&reading).urgent);
    (void)txn_read_take(&reading, 0, &rests, TXN_READ_URGENT_MS);
    (void)txn_read_take(&reading, 1, &rests, TXN_READ_URGENT_MS);
    assert_true(txn_read_ask(&reading).urgent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_player_is_read_once),
        cmocka_unit_test(two_rounds_that_agree_are_answered),
        cmocka_unit_test(a_player_that_changed_is_waited_out),
        cmocka_unit_test(a_change_in_any_place_counts),
        cmocka_unit_test(a_round_with_a_held_player_agrees_with_none),
        cmocka_unit_test(among_steady_writes_it_ends_after_a_few_rounds),
        cmocka_unit_test(where_nobody_is_held_nothing_need_drain),
        cmocka_unit_test(a_read_that_may_not_hold_writes_back_lets_go_and_pauses),
        cmocka_unit_test(a_player_who_may_not_be_held_is_looked_at_again),
        cmocka_unit_test(it_ends_with_its_deadline),
        cmocka_unit_test(an_old_read_is_urgent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
