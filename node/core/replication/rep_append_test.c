#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/replication/sim/rep_narrative.h"

static void entry_commits_once_a_majority_has_it_on_disk(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    rep_sim_hold_disk(sim, 2, true);
    rep_sim_hold_disk(sim, 3, true);
    propose(sim, 1, 4);
    rep_sim_run(sim, 100);
    assert_true(last_index(sim, 2) == 5 && commit_index(sim, 1) == 1);
    assert_int_equal(rep_fsynced_count(rep_sim_rep(sim, 1), 5), 1);
    rep_sim_hold_disk(sim, 2, false);
    rep_sim_run(sim, 20);
    assert_true(commit_index(sim, 1) == 5);
    assert_int_equal(rep_fsynced_count(rep_sim_rep(sim, 1), 5), 2);
    end(sim);
}

static void owner_counts_itself_only_when_its_disk_says_so(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    rep_sim_crash(sim, 3);
    rep_sim_hold_disk(sim, 1, true);
    propose(sim, 1, 1);
    rep_sim_run(sim, 100);
    assert_true(commit_index(sim, 1) == 1);
    rep_sim_hold_disk(sim, 1, false);
    rep_sim_run(sim, 20);
    assert_true(commit_index(sim, 1) == 2);
    end(sim);
}

static void proposals_are_refused_when_too_many_wait_or_too_large(void **state)
{
    struct rep_sim *sim = begin(3);
    static uint8_t large[ENTRY_BODY_BYTES_MAX + 1];
    struct rep_out out = { 0 };
    (void)state;

    sim->limits.inflight_entries_max = 4;
    restart_all(sim);
    promote(sim, 1, 3);
    rep_sim_cut(sim, 1, 2, true);
    rep_sim_cut(sim, 1, 3, true);
    propose(sim, 1, 4);
    assert_int_equal(rep_sim_propose(sim, 1, "one too many"), ERR_FULL);
    assert_int_equal(rep_sim_propose(sim, 2, "elsewhere"), ERR_NOT_OWNER);
    struct rep_event event = { .type = REP_PROPOSE,
                               .kind = ENTRY_OP,
                               .body = { large, sizeof large } };
    assert_int_equal(rep_step(rep_sim_rep(sim, 1), &event, &out), ERR_TOO_LARGE);
    assert_true(last_index(sim, 1) == 5);
    rep_out_deinit(&out);
    end(sim);
}

static void laggard_is_served_from_the_log_on_disk(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    sim->limits.recent_bytes_max = 4096;
    sim->limits.append_entries_max = 16;
    restart_all(sim);
    promote(sim, 1, 3);
    rep_sim_crash(sim, 3);
    for (uint32_t i = 0; i < 50; i++) {
        propose(sim, 1, 10);
        rep_sim_run(sim, 10);
    }
    assert_null(rep_entry(rep_sim_rep(sim, 1), 100)); /* No longer in memory. */
    rep_sim_restart(sim, 3);
    rep_sim_run(sim, 1000);
    assert_true(sim->counts.log_reads > 0);
    assert_true(rep_sim_converged(sim));
    assert_true(rep_retain_index(rep_sim_rep(sim, 2)) == 501);
    end(sim);
}

static void entries_stay_in_memory_only_while_a_member_lacks_them(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    for (uint32_t i = 0; i < 30; i++) {
        propose(sim, 1, 10);
        rep_sim_run(sim, 50);
    }
    assert_null(rep_entry(rep_sim_rep(sim, 1), 100));
    assert_null(rep_entry(rep_sim_rep(sim, 2), 100));
    isolate(sim, 3, true);
    for (uint32_t i = 0; i < 30; i++) {
        propose(sim, 1, 10);
        rep_sim_run(sim, 5);
    }
    assert_true(commit_index(sim, 1) >= 500);
    assert_non_null(rep_entry(rep_sim_rep(sim, 1), 302)); /* Far below recent_bytes_max. */
    isolate(sim, 3, false);
    rep_sim_run(sim, 1000);
    assert_true(rep_sim_converged(sim));
    assert_int_equal(sim->counts.log_reads, 0);
    end(sim);
}

static void messages_to_a_silent_member_are_bounded(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    isolate(sim, 3, true);
    for (uint32_t i = 0; i < 300; i++) {
        propose(sim, 1, 10);
        rep_sim_run(sim, 5);
    }
    uint64_t matched = 0;
    uint64_t heard_ms = 0;
    assert_true(rep_member_state(rep_sim_rep(sim, 1), 3, &matched, &heard_ms));
    assert_true(matched == 1 && heard_ms >= 1400);
    /* Heartbeats and one repeated message; not 3,000 entries again and again. */
    assert_true(sim->counts.dropped < 600);
    isolate(sim, 3, false);
    rep_sim_run(sim, 1000);
    assert_true(rep_sim_converged(sim));
    end(sim);
}

static uint64_t stalled_ms(struct rep_sim *sim, uint64_t replica)
{
    return rep_member_stalled_ms(rep_sim_rep(sim, 1), replica);
}

/* It answers every heartbeat: only what it acknowledged shows that it stands still. */
static void member_that_is_heard_and_does_not_advance_is_stalled(void **state)
{
    struct rep_sim *sim = begin(3);
    uint64_t matched = 0;
    uint64_t heard_ms = 0;
    (void)state;

    promote(sim, 1, 3);
    rep_sim_run(sim, 5000);
    assert_int_equal(stalled_ms(sim, 3), 0); /* There is nothing to acknowledge. */
    rep_sim_hold_disk(sim, 3, true);
    for (uint32_t i = 0; i < 20; i++) {
        propose(sim, 1, 1);
        rep_sim_run(sim, 500);
    }
    assert_true(rep_member_state(rep_sim_rep(sim, 1), 3, &matched, &heard_ms));
    assert_true(heard_ms < 500);
    assert_in_range(stalled_ms(sim, 3), 9800, 10100);
    assert_int_equal(stalled_ms(sim, 2), 0);
    assert_int_equal(stalled_ms(sim, 1), 0);                            /* Itself. */
    assert_int_equal(rep_member_stalled_ms(rep_sim_rep(sim, 2), 3), 0); /* It owns nothing. */
    rep_sim_hold_disk(sim, 3, false);
    rep_sim_run(sim, 1000);
    assert_int_equal(stalled_ms(sim, 3), 0);
    end(sim);
}

/* What is on its way under load is no stall, however far behind it is. */
static void member_that_advances_slowly_is_not_stalled(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    sim->nodes[2].slow_ms = 300;
    for (uint32_t i = 0; i < 100; i++) {
        propose(sim, 1, 10);
        rep_sim_run(sim, 50);
        assert_true(stalled_ms(sim, 3) < 1500);
    }
    end(sim);
}

static void member_behind_the_log_needs_a_snapshot(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    sim->limits.recent_bytes_max = 4096;
    restart_all(sim);
    promote(sim, 1, 3);
    rep_sim_crash(sim, 3);
    propose(sim, 1, 200);
    rep_sim_run(sim, 100);
    sim_disk_checkpoint(&sim->nodes[0].disk, 200);
    sim_disk_cut(&sim->nodes[0].disk, 200);
    assert_true(rep_retain_index(rep_sim_rep(sim, 1)) == 1); /* It was asked not to. */
    rep_sim_restart(sim, 3);
    rep_sim_run(sim, 200);
    assert_true(rep_member_needs_snapshot(rep_sim_rep(sim, 1), 3));
    assert_true(rep_snapshot_source(rep_sim_rep(sim, 3)) == 1); /* It was told. */
    assert_true(rep_snapshot_source(rep_sim_rep(sim, 2)) == 0);
    rep_snapshot_useless(rep_sim_rep(sim, 3)); /* An old one was offered. */
    assert_true(rep_snapshot_source(rep_sim_rep(sim, 3)) == 0);
    rep_sim_run(sim, 500); /* It is told once more. */
    assert_true(rep_snapshot_source(rep_sim_rep(sim, 3)) == 1);
    rep_sim_snapshot(sim, 1, 3);
    rep_sim_run(sim, 300);
    assert_false(rep_member_needs_snapshot(rep_sim_rep(sim, 1), 3));
    assert_true(rep_sim_converged(sim));
    end(sim);
}

static void member_that_is_silent_for_long_holds_no_log(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    sim->limits.lag_ms_max = 500;
    restart_all(sim);
    promote(sim, 1, 3);
    rep_sim_crash(sim, 3);
    propose(sim, 1, 20);
    rep_sim_run(sim, 400);
    assert_true(rep_retain_index(rep_sim_rep(sim, 1)) == 1);
    assert_true(rep_final_index(rep_sim_rep(sim, 1)) == 21); /* A full disk does not wait. */
    rep_sim_run(sim, 200);
    assert_true(rep_retain_index(rep_sim_rep(sim, 1)) == 21);
    assert_true(rep_retain_index(rep_sim_rep(sim, 2)) == 21); /* As the owner told. */
    end(sim);
}

static void snapshot_fits_only_what_it_may_replace(void **state)
{
    struct rep_sim *sim = begin(3);
    struct hash128 other = { { 1 } };
    (void)state;

    promote(sim, 1, 3);
    propose(sim, 1, 9);
    rep_sim_run(sim, 50);
    const struct rep *follower = rep_sim_rep(sim, 2);
    assert_true(commit_index(sim, 2) == 10);
    assert_false(rep_snapshot_fits(follower, 10, other)); /* Nothing new in it. */
    assert_true(rep_snapshot_fits(follower, 11, other));
    assert_false(rep_snapshot_fits(rep_sim_rep(sim, 1), 11, other)); /* An owner has it all. */
    rep_sim_cut(sim, 1, 3, true);
    rep_sim_hold_disk(sim, 1, true);
    propose(sim, 1, 5);
    rep_sim_run(sim, 20);
    assert_true(last_index(sim, 2) == 15 && commit_index(sim, 2) == 10);
    struct hash128 own = rep_entry(follower, 12)->hash;
    assert_false(rep_snapshot_fits(follower, 12, own)); /* What is above it may be committed. */
    assert_true(rep_snapshot_fits(follower, 12, other));
    end(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entry_commits_once_a_majority_has_it_on_disk),
        cmocka_unit_test(owner_counts_itself_only_when_its_disk_says_so),
        cmocka_unit_test(proposals_are_refused_when_too_many_wait_or_too_large),
        cmocka_unit_test(laggard_is_served_from_the_log_on_disk),
        cmocka_unit_test(entries_stay_in_memory_only_while_a_member_lacks_them),
        cmocka_unit_test(messages_to_a_silent_member_are_bounded),
        cmocka_unit_test(member_that_is_heard_and_does_not_advance_is_stalled),
        cmocka_unit_test(member_that_advances_slowly_is_not_stalled),
        cmocka_unit_test(member_behind_the_log_needs_a_snapshot),
        cmocka_unit_test(member_that_is_silent_for_long_holds_no_log),
        cmocka_unit_test(snapshot_fits_only_what_it_may_replace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
