/* Owners whose clocks are ahead, and what they had dated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/replication/sim/rep_narrative.h"

#define JUMP_MS 300000
#define DAY_MS  86400000

static void clocks(struct rep_sim *sim, int64_t first_ms, int64_t second_ms)
{
    sim->nodes[0].skew_ms = first_ms;
    sim->nodes[1].skew_ms = second_ms;
}

static uint64_t dated_ms(struct rep_sim *sim, uint64_t id, uint64_t index)
{
    return rep_entry(rep_sim_rep(sim, id), index)->owner_ms;
}

static void an_owner_whose_clock_is_ahead_of_all_others_writes_nothing(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    clocks(sim, JUMP_MS, 0);
    rep_sim_run(sim, 400); /* It says what time it is in every heartbeat. */
    assert_true(rep_clock_is_ahead(rep_sim_rep(sim, 1)));
    assert_false(rep_clock_is_ahead(rep_sim_rep(sim, 2)));
    assert_int_equal(rep_sim_propose(sim, 1, "grant"), ERR_NOT_OWNER);
    assert_true(last_index(sim, 1) == 1);
    clocks(sim, 0, 0);
    rep_sim_run(sim, 400);
    assert_false(rep_clock_is_ahead(rep_sim_rep(sim, 1)));
    propose(sim, 1, 1);
    rep_sim_run(sim, 100);
    assert_true(commit_index(sim, 3) == 2);
    end(sim);
}

static void a_clock_that_one_of_two_others_shares_is_not_ahead(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    clocks(sim, JUMP_MS, JUMP_MS);
    rep_sim_run(sim, 400);
    assert_false(rep_clock_is_ahead(rep_sim_rep(sim, 1)));
    rep_sim_crash(sim, 2); /* Without it none is left that takes what 1 dates. */
    rep_sim_run(sim, 2500);
    assert_true(rep_clock_is_ahead(rep_sim_rep(sim, 1)));
    rep_sim_restart(sim, 2);
    end(sim);
}

static void silence_says_nothing_of_a_clock(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    rep_sim_crash(sim, 2);
    rep_sim_crash(sim, 3);
    rep_sim_run(sim, 5000);
    assert_false(rep_clock_is_ahead(rep_sim_rep(sim, 1)));
    rep_sim_restart(sim, 2);
    rep_sim_restart(sim, 3);
    end(sim);
}

/* It wrote before it was told: no other replica has that, and it stops its own shard even when its
 * clock is right again. */
static void what_an_owner_alone_dated_ahead_goes_with_it(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    clocks(sim, DAY_MS, 0);
    propose(sim, 1, 3);
    rep_sim_run(sim, 100);
    assert_true(last_index(sim, 1) == 4 && commit_index(sim, 1) == 1);
    clocks(sim, 0, 0);
    rep_sim_run(sim, 1000);
    assert_true(commit_index(sim, 1) == 1);
    assert_true(rep_clock_is_ahead(rep_sim_rep(sim, 1)));
    promote(sim, 2, 3);
    rep_sim_run(sim, 100);
    propose(sim, 2, 1);
    rep_sim_run(sim, 100);
    assert_true(commit_index(sim, 2) == 3);
    assert_true(dated_ms(sim, 2, 3) <= SIM_UNIX_MS + sim->now_ms);
    assert_true(rep_sim_converged(sim));
    end(sim);
}

/* The same where it is named again: it is its own log that it cuts. */
static void an_owner_named_again_drops_what_it_had_dated_ahead(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    clocks(sim, DAY_MS, 0);
    propose(sim, 1, 3);
    rep_sim_run(sim, 100);
    clocks(sim, 0, 0);
    promote(sim, 1, 3);
    rep_sim_run(sim, 100);
    propose(sim, 1, 1);
    rep_sim_run(sim, 100);
    assert_true(commit_index(sim, 1) == 3);
    assert_true(dated_ms(sim, 1, 3) <= SIM_UNIX_MS + sim->now_ms);
    assert_true(rep_sim_converged(sim));
    end(sim);
}

/* Two of three had it, so it may be committed: it stays as it is, and the shard goes on at that
 * moment, until the clocks have come to it. */
static void what_may_be_committed_keeps_its_date_and_stops_nothing(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    rep_sim_cut(sim, 1, 3, true);
    clocks(sim, DAY_MS, DAY_MS);
    propose(sim, 1, 2);
    rep_sim_run(sim, 100);
    assert_true(commit_index(sim, 1) == 3);
    uint64_t ahead_ms = dated_ms(sim, 1, 3);
    clocks(sim, 0, 0);
    rep_sim_crash(sim, 1);
    rep_sim_cut(sim, 1, 3, false);
    promote(sim, 2, 3);
    rep_sim_run(sim, 3000);
    propose(sim, 2, 1);
    assert_true(dated_ms(sim, 2, 5) == ahead_ms);
    rep_sim_run(sim, 500);
    assert_true(commit_index(sim, 2) == 5); /* With 3, whose clock was right all along. */
    rep_sim_restart(sim, 1);
    promote(sim, 3, 3);
    rep_sim_run(sim, 500);
    propose(sim, 3, 1);
    rep_sim_run(sim, 500);
    assert_true(commit_index(sim, 1) == 7);
    assert_true(rep_sim_converged(sim));
    end(sim);
}

/* What was committed before the joint record needed the old members alone: 1 and 2. Of the new ones
 * a majority lacks it. */
static void what_the_old_members_may_have_committed_stays_in_a_joint_phase(void **state)
{
    struct rep_sim *sim = begin(4);
    struct membership m = rep_sim_members(2, 3);
    (void)state;

    m.new_count = 3;
    for (uint32_t i = 0; i < 3; i++)
        m.new_members[i] = 2 + i;
    promote(sim, 1, 3);
    rep_sim_cut(sim, 1, 3, true);
    clocks(sim, DAY_MS, DAY_MS);
    propose(sim, 1, 2);
    while (commit_index(sim, 1) < 3)
        rep_sim_run(sim, 1);
    uint64_t ahead_ms = dated_ms(sim, 1, 3);
    rep_sim_crash(sim, 1);
    assert_true(commit_index(sim, 2) < 3); /* It does not know. */
    rep_sim_cut(sim, 1, 3, false);
    clocks(sim, 0, 0);
    rep_sim_record(sim, 3, &m);
    rep_sim_run(sim, 4000);
    assert_int_equal(role(sim, 3), REP_OWNER);
    assert_true(commit_index(sim, 3) > 3);
    assert_true(dated_ms(sim, 3, 3) == ahead_ms);
    rep_sim_restart(sim, 1);
    rep_sim_run(sim, 1000);
    end(sim);
}

/* 3 was away, and its clock is right: what the others committed is final, whatever its date. */
static void what_is_committed_is_taken_whatever_its_date(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    clocks(sim, DAY_MS, DAY_MS);
    propose(sim, 1, 2);
    rep_sim_run(sim, 1000);
    assert_true(commit_index(sim, 3) == 3);
    clocks(sim, 0, 0);
    propose(sim, 1, 1);
    rep_sim_run(sim, 100);
    assert_true(commit_index(sim, 1) == 4);
    rep_sim_run(sim, 500);
    assert_true(rep_sim_converged(sim));
    end(sim);
}

/* It is named all the same, for want of another: that alone moves no time. */
static void a_start_moves_no_time(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 2, 3);
    propose(sim, 2, 1);
    rep_sim_run(sim, 100);
    uint64_t last_ms = dated_ms(sim, 2, 2);
    rep_sim_crash(sim, 3);
    clocks(sim, DAY_MS, 0);
    promote(sim, 1, 3);
    assert_int_equal(role(sim, 1), REP_OWNER);
    assert_true(dated_ms(sim, 1, 3) == last_ms);
    rep_sim_run(sim, 2000);
    assert_true(rep_clock_is_ahead(rep_sim_rep(sim, 1)));
    promote(sim, 2, 3);
    propose(sim, 2, 1);
    rep_sim_run(sim, 100);
    assert_true(commit_index(sim, 2) == 5);
    assert_true(dated_ms(sim, 2, 5) <= SIM_UNIX_MS + sim->now_ms);
    rep_sim_restart(sim, 3);
    end(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_whose_clock_is_ahead_of_all_others_writes_nothing),
        cmocka_unit_test(a_clock_that_one_of_two_others_shares_is_not_ahead),
        cmocka_unit_test(silence_says_nothing_of_a_clock),
        cmocka_unit_test(what_an_owner_alone_dated_ahead_goes_with_it),
        cmocka_unit_test(an_owner_named_again_drops_what_it_had_dated_ahead),
        cmocka_unit_test(what_may_be_committed_keeps_its_date_and_stops_nothing),
        cmocka_unit_test(what_the_old_members_may_have_committed_stays_in_a_joint_phase),
        cmocka_unit_test(what_is_committed_is_taken_whatever_its_date),
        cmocka_unit_test(a_start_moves_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
