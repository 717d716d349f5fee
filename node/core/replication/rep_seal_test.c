#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/replication/sim/rep_narrative.h"

static void named_replica_seals_starts_and_serves(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    assert_int_equal(role(sim, 1), REP_OWNER);
    assert_int_equal(role(sim, 2), REP_FOLLOWER);
    assert_true(rep_owner(rep_sim_rep(sim, 2)) == 1 && rep_epoch(rep_sim_rep(sim, 2)) == 1);
    assert_true(commit_index(sim, 1) == 1); /* START. */
    end(sim);
}

static void only_member_needs_nobody_else(void **state)
{
    struct rep_sim *sim = begin(1);
    (void)state;

    promote(sim, 1, 1);
    assert_int_equal(role(sim, 1), REP_OWNER);
    end(sim);
}

static void vote_waits_for_the_voters_disk(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    rep_sim_hold_disk(sim, 2, true);
    rep_sim_hold_disk(sim, 3, true);
    promote(sim, 1, 3);
    rep_sim_run(sim, 300);
    assert_int_equal(role(sim, 1), REP_SEALING);
    rep_sim_hold_disk(sim, 3, false);
    rep_sim_run(sim, 100);
    /* A new shard waits a moment for every member to say what it can apply. */
    assert_int_equal(role(sim, 1), REP_SEALING);
    rep_sim_run(sim, 5000);
    assert_int_equal(role(sim, 1), REP_OWNER);
    end(sim);
}

/* Or START might become durable elsewhere, and be made a second time after a crash. */
static void own_promise_is_durable_before_start(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    rep_sim_hold_disk(sim, 1, true);
    promote(sim, 1, 3);
    rep_sim_run(sim, 300);
    assert_int_equal(role(sim, 1), REP_SEALING);
    assert_true(last_index(sim, 2) == 0 && last_index(sim, 3) == 0);
    rep_sim_hold_disk(sim, 1, false);
    rep_sim_run(sim, 100);
    assert_int_equal(role(sim, 1), REP_OWNER);
    end(sim);
}

static void appends_before_the_promise_are_in_the_sealed_log(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    rep_sim_hold_disk(sim, 2, true);
    rep_sim_cut(sim, 1, 3, true);
    propose(sim, 1, 1);
    rep_sim_run(sim, 20); /* On its way to the disk of 2. */
    isolate(sim, 1, true);
    promote(sim, 3, 3);
    assert_int_equal(role(sim, 3), REP_SEALING); /* 2 may not answer yet. */
    rep_sim_hold_disk(sim, 2, false);
    rep_sim_run(sim, 200);
    assert_int_equal(role(sim, 3), REP_OWNER);
    assert_true(last_index(sim, 3) == 3); /* START, the append, START. */
    end(sim);
}

static void unacknowledged_tail_is_adopted_whole(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    rep_sim_cut(sim, 1, 3, true);
    sim->cut[1][0] = true; /* 2 hears 1, but its acknowledgements are lost. */
    propose(sim, 1, 5);
    rep_sim_run(sim, 20);
    assert_true(commit_index(sim, 1) == 1);
    rep_sim_crash(sim, 1);
    promote(sim, 3, 3);
    rep_sim_run(sim, 100);
    assert_int_equal(role(sim, 3), REP_OWNER);
    assert_true(commit_index(sim, 3) == 7);
    end(sim);
}

static void deposed_owner_learns_it_from_a_refusal(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    isolate(sim, 1, true);
    promote(sim, 2, 3);
    rep_sim_run(sim, 100);
    assert_int_equal(role(sim, 2), REP_OWNER);
    assert_int_equal(role(sim, 1), REP_OWNER); /* It cannot know, and cannot commit. */
    isolate(sim, 1, false);
    rep_sim_run(sim, 100);
    assert_int_equal(role(sim, 1), REP_FOLLOWER);
    assert_true(rep_owner(rep_sim_rep(sim, 1)) == 2);
    end(sim);
}

/* The first dots of an epoch may be lost in the crash: they must not be given again. */
static void owner_that_crashed_does_not_resume_its_epoch(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    rep_sim_crash(sim, 1);
    rep_sim_restart(sim, 1);
    struct rep_out out = { 0 };
    struct rep_event event = { .type = REP_RECORD, .record = &sim->records[0] };
    assert_int_equal(rep_step(rep_sim_rep(sim, 1), &event, &out), ERR_OK);
    assert_int_equal(out.send_count, 0);
    assert_int_equal(role(sim, 1), REP_FOLLOWER);
    promote(sim, 1, 3); /* The next epoch. */
    assert_int_equal(role(sim, 1), REP_OWNER);
    rep_out_deinit(&out);
    end(sim);
}

static void record_read_late_is_ignored(void **state)
{
    struct rep_sim *sim = begin(3);
    struct rep_out out = { 0 };
    (void)state;

    promote(sim, 1, 3);
    rep_sim_cut(sim, 2, 3, true); /* 3 sees the record, but no SEAL of it. */
    promote(sim, 2, 3);
    struct rep_record late = sim->records[1];
    late.owner = 3;
    late.epoch = 1;
    struct rep_event event = { .type = REP_RECORD, .record = &late };
    assert_int_equal(rep_step(rep_sim_rep(sim, 3), &event, &out), ERR_OK);
    assert_int_equal(role(sim, 3), REP_FOLLOWER);
    assert_true(rep_epoch(rep_sim_rep(sim, 3)) == 2);
    late.epoch = 9;
    late.generation = 0; /* Of an etcd that was restored since. */
    assert_int_equal(rep_step(rep_sim_rep(sim, 3), &event, &out), ERR_OK);
    assert_int_equal(role(sim, 3), REP_FOLLOWER);
    rep_out_deinit(&out);
    end(sim);
}

static void joint_phase_seals_and_commits_with_both_majorities(void **state)
{
    struct rep_sim *sim = begin(6);
    struct membership m = rep_sim_members(2, 3);
    (void)state;

    m.new_count = 3;
    for (uint32_t i = 0; i < 3; i++)
        m.new_members[i] = 4 + i;
    promote(sim, 1, 3);
    rep_sim_crash(sim, 4);
    rep_sim_crash(sim, 5);
    rep_sim_record(sim, 1, &m);
    rep_sim_run(sim, 300);
    assert_int_equal(role(sim, 1), REP_SEALING);
    rep_sim_restart(sim, 4);
    rep_sim_run(sim, 200);
    assert_int_equal(role(sim, 1), REP_OWNER);
    rep_sim_crash(sim, 6);
    propose(sim, 1, 1);
    rep_sim_run(sim, 200);
    assert_true(commit_index(sim, 1) + 1 == last_index(sim, 1));
    rep_sim_restart(sim, 5);
    rep_sim_run(sim, 200);
    assert_true(commit_index(sim, 1) == last_index(sim, 1));
    end(sim);
}

static void wiped_replica_does_not_vote_but_learns(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    rep_sim_wipe(sim, 3);
    rep_sim_restart(sim, 3);
    propose(sim, 1, 3);
    rep_sim_run(sim, 300);
    assert_true(last_index(sim, 3) == 4);
    assert_int_equal(rep_fsynced_count(rep_sim_rep(sim, 1), 4), 2);
    rep_sim_crash(sim, 2);
    promote(sim, 1, 3);
    rep_sim_run(sim, 300);
    assert_int_equal(role(sim, 1), REP_SEALING);
    end(sim);
}

/* 4 is a learner beside 1, 2 and 3. */
static struct rep_sim *begin_learning(void)
{
    struct rep_sim *sim = begin(4);
    struct membership m = rep_sim_members(1, 3);

    m.learner = 4;
    rep_sim_record(sim, 1, &m);
    rep_sim_run(sim, 50);
    return sim;
}

static void learner_gets_entries_and_counts_nowhere(void **state)
{
    struct rep_sim *sim = begin_learning();
    (void)state;

    propose(sim, 1, 5);
    rep_sim_run(sim, 50);
    assert_true(commit_index(sim, 4) == 6);
    assert_true(rep_fsynced_count(rep_sim_rep(sim, 1), 6) == 3);
    isolate(sim, 2, true);
    isolate(sim, 3, true);
    propose(sim, 1, 5);
    rep_sim_run(sim, 100);
    assert_true(last_index(sim, 4) == 11);
    assert_true(commit_index(sim, 1) == 6); /* Two have it, one of them a learner. */
    end(sim);
}

static void learner_without_the_log_is_not_near_however_short_that_is(void **state)
{
    struct rep_sim *sim = begin(4);
    struct membership m = rep_sim_members(1, 3);
    (void)state;

    sim->limits.recent_bytes_max = 4096;
    for (uint64_t id = 1; id <= 4; id++) {
        rep_sim_crash(sim, id);
        rep_sim_restart(sim, id);
    }
    rep_sim_record(sim, 1, &m);
    rep_sim_run(sim, 50);
    propose(sim, 1, 200);
    rep_sim_run(sim, 100);
    sim_disk_checkpoint(&sim->nodes[0].disk, 190);
    sim_disk_cut(&sim->nodes[0].disk, 190);
    m.learner = 4;
    rep_sim_record(sim, 1, &m);
    rep_sim_run(sim, 200);
    assert_true(rep_member_needs_snapshot(rep_sim_rep(sim, 1), 4));
    assert_true(rep_learner_lag(rep_sim_rep(sim, 1)) == UINT64_MAX);
    rep_sim_snapshot(sim, 1, 4);
    rep_sim_run(sim, 300);
    assert_true(rep_learner_lag(rep_sim_rep(sim, 1)) == 0);
    end(sim);
}

static void learner_is_not_asked_for_a_promise(void **state)
{
    struct rep_sim *sim = begin_learning();
    struct membership m = rep_sim_members(1, 3);
    (void)state;

    m.learner = 4;
    isolate(sim, 1, true);
    isolate(sim, 3, true);
    rep_sim_record(sim, 2, &m);
    rep_sim_run(sim, 500);
    assert_int_equal(role(sim, 2), REP_SEALING); /* It reaches itself and the learner. */
    isolate(sim, 3, false);
    rep_sim_run(sim, 500);
    assert_int_equal(role(sim, 2), REP_OWNER);
    end(sim);
}

static void removed_replica_refuses_earlier_owners_for_ever(void **state)
{
    struct rep_sim *sim = begin(4);
    struct membership old = rep_sim_members(1, 3);
    struct membership without = { .config = 2, .count = 2, .members = { 3, 4 } };
    (void)state;

    rep_sim_record(sim, 1, &old);
    rep_sim_run(sim, 50);
    propose(sim, 1, 5);
    rep_sim_run(sim, 50);
    assert_false(rep_is_removed(rep_sim_rep(sim, 2)));
    isolate(sim, 1, true); /* It goes on believing. */
    rep_sim_record(sim, 3, &without);
    rep_sim_run(sim, 50);
    assert_true(rep_is_removed(rep_sim_rep(sim, 2)));
    assert_true(rep_may_drop(rep_sim_rep(sim, 2)));
    assert_false(rep_is_mute(rep_sim_rep(sim, 2)));
    rep_sim_forget(sim, 2);
    assert_true(last_index(sim, 2) == 0 && rep_is_removed(rep_sim_rep(sim, 2)));
    assert_true(rep_is_mute(rep_sim_rep(sim, 2)));
    rep_sim_cut(sim, 1, 2, false);
    propose(sim, 1, 1);
    rep_sim_run(sim, 300);
    assert_int_equal(role(sim, 1), REP_FOLLOWER); /* 2 told it of a later epoch. */
    assert_true(last_index(sim, 2) == 0);
    end(sim);
}

static void run_program(struct rep_sim *sim, uint64_t id, uint32_t version)
{
    sim->nodes[id - 1].program = version;
    rep_sim_crash(sim, id);
    rep_sim_restart(sim, id);
}

static void owner_says_when_its_members_have_outgrown_its_version(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    sim->limits.raise_after_ms = 500;
    restart_all(sim);
    run_program(sim, 1, 2);
    run_program(sim, 2, 2);
    promote(sim, 1, 3);
    assert_int_equal(rep_apply_version(rep_sim_rep(sim, 1)), 1);
    rep_sim_run(sim, 1000);
    assert_false(rep_is_outgrown(rep_sim_rep(sim, 1))); /* 3 applies no later one. */
    run_program(sim, 3, 2);
    rep_sim_run(sim, 300);
    assert_true(rep_is_outgrown(rep_sim_rep(sim, 1))); /* The first epoch of all. */
    assert_false(rep_is_outgrown(rep_sim_rep(sim, 2)));
    promote(sim, 1, 3);
    rep_sim_run(sim, 300);
    assert_int_equal(rep_apply_version(rep_sim_rep(sim, 1)), 2);
    assert_false(rep_is_outgrown(rep_sim_rep(sim, 1)));
    run_program(sim, 1, 3);
    run_program(sim, 2, 3);
    promote(sim, 1, 3);
    run_program(sim, 3, 3);
    rep_sim_run(sim, 300);
    assert_false(rep_is_outgrown(rep_sim_rep(sim, 1))); /* It may be taken back. */
    run_program(sim, 3, 2);
    rep_sim_run(sim, 1000);
    assert_false(rep_is_outgrown(rep_sim_rep(sim, 1)));
    run_program(sim, 3, 3);
    rep_sim_run(sim, 1000);
    assert_true(rep_is_outgrown(rep_sim_rep(sim, 1)));
    end(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named_replica_seals_starts_and_serves),
        cmocka_unit_test(only_member_needs_nobody_else),
        cmocka_unit_test(owner_says_when_its_members_have_outgrown_its_version),
        cmocka_unit_test(vote_waits_for_the_voters_disk),
        cmocka_unit_test(own_promise_is_durable_before_start),
        cmocka_unit_test(appends_before_the_promise_are_in_the_sealed_log),
        cmocka_unit_test(unacknowledged_tail_is_adopted_whole),
        cmocka_unit_test(deposed_owner_learns_it_from_a_refusal),
        cmocka_unit_test(owner_that_crashed_does_not_resume_its_epoch),
        cmocka_unit_test(record_read_late_is_ignored),
        cmocka_unit_test(joint_phase_seals_and_commits_with_both_majorities),
        cmocka_unit_test(wiped_replica_does_not_vote_but_learns),
        cmocka_unit_test(learner_gets_entries_and_counts_nowhere),
        cmocka_unit_test(learner_without_the_log_is_not_near_however_short_that_is),
        cmocka_unit_test(learner_is_not_asked_for_a_promise),
        cmocka_unit_test(removed_replica_refuses_earlier_owners_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
