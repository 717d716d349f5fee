#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/replication/sim/rep_narrative.h"
#include "node/core/replication/sim/rep_sim_chaos.h"

static void outcomes_that_differ_are_noticed(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    propose(sim, 1, 1);
    rep_sim_run(sim, 100);
    assert_string_equal(sim->failure, "");
    sim->nodes[1].applied.outcome.bytes[0] ^= 1; /* As if apply had a bug at replica 2. */
    propose(sim, 1, 1);
    rep_sim_run(sim, 100);
    assert_non_null(strstr(sim->failure, "diverged"));
    sim->failure[0] = '\0';
    end(sim);
}

static void damaged_replica_stores_but_neither_votes_nor_serves(void **state)
{
    struct rep_image image = { .votes = true, .damaged = true };
    struct rep_limits limits = rep_limits_default();
    struct rep *rep = rep_new(1, 2, &limits, &image);
    struct rep_out out = { 0 };
    struct rep_message m = { .shard = 1, .config = 1, .epoch = 1, .owner = 1 };
    struct rep_event event = { .type = REP_RECEIVE, .from = 1, .message = &m };
    (void)state;

    m.type = REP_MSG_SEAL;
    assert_int_equal(rep_step(rep, &event, &out), ERR_OK);
    m.type = REP_MSG_FETCH;
    assert_int_equal(rep_step(rep, &event, &out), ERR_OK);
    assert_int_equal(out.send_count, 0);
    m.type = REP_MSG_APPEND;
    m.round = 1;
    assert_int_equal(rep_step(rep, &event, &out), ERR_OK);
    assert_int_equal(out.send_count, 1);
    assert_false(out.sends[0].message.votes);
    assert_int_equal(rep_role(rep), REP_DAMAGED);
    rep_out_deinit(&out);
    rep_free(rep);
}

static struct rep_record record_of(uint64_t epoch, uint64_t config, uint64_t third)
{
    return (struct rep_record){ .generation = 1,
                                .epoch = epoch,
                                .owner = 1,
                                .membership = { .config = config,
                                                .count = 3,
                                                .members = { 1, third < 3 ? third : 3,
                                                             third < 3 ? 3 : third } } };
}

/* Told of a record, and all is durable that it asks for. */
static void tell(struct rep *rep, const struct rep_record *record, struct rep_out *out)
{
    assert_int_equal(
        rep_step(rep, &(struct rep_event){ .type = REP_RECORD, .now_ms = 10, .record = record },
                 out),
        ERR_OK);
    for (uint32_t i = 0; i < out->write_count; i++)
        assert_int_equal(rep_step(rep,
                                  &(struct rep_event){ .type = REP_PERSISTED,
                                                       .now_ms = 11,
                                                       .ticket = out->writes[i].ticket },
                                  out),
                         ERR_OK);
}

static void an_owner_is_known_though_a_removed_replica_told_the_epoch_first(void **state)
{
    struct rep_image image = { .votes = true };
    struct rep_limits limits = rep_limits_default();
    struct rep *rep = rep_new(1, 1, &limits, &image);
    struct rep_record before = record_of(10, 5, 2), named = record_of(11, 6, 2);
    struct rep_message tombstone = {
        .type = REP_MSG_SEAL_ACK, .shard = 1, .config = 6, .epoch = 11, .refused = true
    };
    struct rep_out out = { 0 };
    (void)state;

    tell(rep, &before, &out);
    assert_int_equal(rep_role(rep), REP_SEALING);
    assert_int_equal(
        rep_step(rep,
                 &(struct rep_event){
                     .type = REP_RECEIVE, .now_ms = 12, .from = 2, .message = &tombstone },
                 &out),
        ERR_OK);
    assert_int_equal(rep_role(rep), REP_FOLLOWER);
    assert_int_equal(rep_epoch(rep), 11);
    assert_int_equal(rep_owner(rep), 0);
    tell(rep, &named, &out);
    assert_int_equal(rep_role(rep), REP_SEALING);
    assert_int_equal(rep_owner(rep), 1);
    rep_out_deinit(&out);
    rep_free(rep);
}

/* What is left of its promises says that it was removed; it came back since. */
static void damaged_replica_trusts_a_confirmed_record_alone(void **state)
{
    struct rep_image image = { .damaged = true, .promise = { 3, 7, 0 } };
    struct rep_limits limits = rep_limits_default();
    struct rep *rep = rep_new(1, 2, &limits, &image);
    struct rep_record old = record_of(8, 3, 4);
    struct rep_record member = record_of(12, 5, 2);
    struct rep_record removed = record_of(14, 7, 4);
    struct rep_out out = { 0 };
    (void)state;

    assert_false(rep_is_removed(rep));
    tell(rep, &old, &out);
    member.confirmed = true;
    tell(rep, &member, &out);
    assert_false(rep_is_removed(rep));
    assert_int_equal(out.write_count, 0);
    tell(rep, &removed, &out);
    assert_false(rep_is_removed(rep));
    removed.confirmed = true;
    tell(rep, &removed, &out);
    assert_true(rep_is_removed(rep));
    assert_int_equal(out.write_count, 1);
    assert_int_equal(out.writes[0].promise.config, 7);
    assert_int_equal(out.writes[0].promise.epoch, 14);
    assert_int_equal(out.writes[0].promise.owner, 0);
    assert_int_equal(rep_role(rep), REP_DAMAGED);
    rep_out_deinit(&out);
    rep_free(rep);
}

/* The owner of epoch 7 started again, and reads the record of 7 once more: it may have made a START
 * of it, so another one must be named. */
static void owner_declines_an_epoch_that_it_had_in_another_life(void **state)
{
    struct rep_image image = { .votes = true, .promise = { 3, 7, 2 }, .log_first_index = 1 };
    struct rep_limits limits = rep_limits_default();
    struct rep *rep = rep_new(1, 2, &limits, &image);
    struct rep_record record = record_of(7, 3, 2);
    struct rep_out out = { 0 };
    (void)state;

    record.owner = 2;
    tell(rep, &record, &out);
    assert_int_equal(rep_role(rep), REP_FOLLOWER);
    assert_true(rep_declines(rep));
    record.epoch = 8;
    tell(rep, &record, &out);
    assert_int_equal(rep_role(rep), REP_SEALING);
    assert_false(rep_declines(rep));
    record.epoch = 9;
    record.owner = 1;
    tell(rep, &record, &out);
    assert_int_equal(rep_role(rep), REP_FOLLOWER);
    assert_false(rep_declines(rep));
    rep_out_deinit(&out);
    rep_free(rep);
}

/* A crash came between its tombstone and the loss of what it had. */
static void damaged_replica_that_was_buried_already_is_told_once_more(void **state)
{
    struct rep_image image = { .damaged = true, .promise = { 7, 14, 0 } };
    struct rep_limits limits = rep_limits_default();
    struct rep *rep = rep_new(1, 2, &limits, &image);
    struct rep_record removed = record_of(14, 7, 4);
    struct rep_out out = { 0 };
    (void)state;

    assert_false(rep_is_removed(rep));
    removed.confirmed = true;
    tell(rep, &removed, &out);
    assert_true(rep_is_removed(rep));
    assert_int_equal(out.write_count, 0);
    rep_out_deinit(&out);
    rep_free(rep);
}

/* Removed, and not dropped yet, when etcd was put back to a backup: the accepted record counts on
 * its log, and names it. */
static void removed_replica_that_is_named_again_keeps_its_log(void **state)
{
    struct rep_image image = { .promise = { 7, 14, 0 } };
    struct rep_limits limits = rep_limits_default();
    struct rep *rep = rep_new(1, 2, &limits, &image);
    struct rep_record named = record_of(1000014, 1007, 2), removed = record_of(1000015, 1008, 4);
    struct rep_out out = { 0 };
    (void)state;

    assert_true(rep_is_removed(rep));
    tell(rep, &named, &out);
    assert_false(rep_may_drop(rep));
    tell(rep, &removed, &out);
    assert_true(rep_may_drop(rep));
    rep_out_deinit(&out);
    rep_free(rep);
}

/* From any sender: a message must not stop the process, nor be believed. */
static void messages_of_strangers_are_ignored(void **state)
{
    struct rep_sim *sim = begin(3);
    struct rep_out out = { 0 };
    struct rep_message m = { .shard = 3,
                             .config = 1,
                             .epoch = 9,
                             .owner = 2,
                             .votes = true,
                             .matched_index = 99,
                             .round = 7 };
    struct rep_event event = { .type = REP_RECEIVE, .from = 3, .message = &m };
    (void)state;

    promote(sim, 1, 3);
    for (int type = REP_MSG_APPEND; type <= REP_MSG_FETCH_ACK; type++) {
        m.type = (enum rep_message_type)type; /* Its owner is not the sender. */
        assert_int_equal(rep_step(rep_sim_rep(sim, 1), &event, &out), ERR_OK);
    }
    m.type = REP_MSG_APPEND_ACK; /* Of our epoch, but beyond our log. */
    m.epoch = 1;
    m.owner = 1;
    assert_int_equal(rep_step(rep_sim_rep(sim, 1), &event, &out), ERR_OK);
    m.shard = 4;
    m.type = REP_MSG_SEAL;
    m.epoch = 9;
    m.owner = 3;
    assert_int_equal(rep_step(rep_sim_rep(sim, 1), &event, &out), ERR_OK);
    assert_int_equal(role(sim, 1), REP_OWNER);
    assert_true(commit_index(sim, 1) == 1);
    rep_out_deinit(&out);
    end(sim);
}

static void owner_is_heard_by_its_heartbeats(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    rep_sim_run(sim, 500);
    assert_true(sim->now_ms - rep_owner_heard_ms(rep_sim_rep(sim, 2)) <= 60);
    rep_sim_crash(sim, 1);
    rep_sim_run(sim, 500);
    assert_true(sim->now_ms - rep_owner_heard_ms(rep_sim_rep(sim, 2)) >= 450);
    rep_sim_crash(sim, 2); /* Who has just started has not listened for long. */
    rep_sim_restart(sim, 2);
    rep_sim_run(sim, 100);
    assert_true(rep_owner_silent_ms(rep_sim_rep(sim, 2)) <= 120);
    end(sim);
}

/* Else it would report a healthy owner as silent for as long as the machine has been up. */
static void replica_that_starts_counts_its_owners_silence_from_there(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    rep_sim_run(sim, 5000);
    rep_sim_crash(sim, 1);
    rep_sim_crash(sim, 2);
    rep_sim_restart(sim, 2);
    rep_sim_run(sim, 100);
    assert_true(rep_owner_silent_ms(rep_sim_rep(sim, 2)) <= 150);
    rep_sim_run(sim, 500);
    assert_true(rep_owner_silent_ms(rep_sim_rep(sim, 2)) >= 450);
    end(sim);
}

static void same_seed_replays_the_same_run(void **state)
{
    uint64_t steps[2];
    (void)state;

    for (int i = 0; i < 2; i++) {
        struct rep_sim *sim = mem_alloc(sizeof *sim);
        rep_sim_chaos_begin(sim, 77);
        rep_sim_run(sim, 1000);
        steps[i] = sim->counts.steps;
        end(sim);
    }
    assert_true(steps[0] == steps[1]);
}

/* As if apply had a bug there, from here on. Both notice, which is what this is about. */
static void spoil(struct rep_sim *sim, uint64_t id)
{
    sim->nodes[id - 1].applied.outcome.bytes[0] ^= 1;
}

static void compare_for_a_while(struct rep_sim *sim, uint64_t owner)
{
    propose(sim, owner, 3);
    rep_sim_run(sim, 500);
    sim->failure[0] = 0;
    rep_sim_run(sim, 500);
    sim->failure[0] = 0;
}

static bool quarantined(struct rep_sim *sim, uint64_t id)
{
    return rep_is_quarantined(rep_sim_rep(sim, id));
}

static void follower_that_differs_from_a_majority_stores_votes_and_never_owns(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    propose(sim, 1, 1);
    rep_sim_run(sim, 100);
    spoil(sim, 2);
    compare_for_a_while(sim, 1);
    assert_false(quarantined(sim, 1));
    assert_true(quarantined(sim, 2));
    assert_false(quarantined(sim, 3));
    assert_int_equal(role(sim, 1), REP_OWNER);
    /* Its log is right, and counts: the third one is not needed. */
    isolate(sim, 3, true);
    compare_for_a_while(sim, 1);
    assert_int_equal(commit_index(sim, 1), last_index(sim, 1));
    isolate(sim, 3, false);
    promote(sim, 2, 3);
    assert_int_equal(role(sim, 2), REP_FOLLOWER);
    promote(sim, 3, 3);
    assert_int_equal(role(sim, 3), REP_OWNER);
    sim->failure[0] = 0;
    end(sim);
}

static void owner_that_differs_from_a_majority_steps_down(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    propose(sim, 1, 1);
    rep_sim_run(sim, 100);
    spoil(sim, 1);
    compare_for_a_while(sim, 1);
    assert_true(quarantined(sim, 1));
    assert_false(quarantined(sim, 2));
    assert_false(quarantined(sim, 3));
    assert_int_equal(role(sim, 1), REP_FOLLOWER);
    promote(sim, 2, 3);
    assert_int_equal(role(sim, 2), REP_OWNER);
    sim->failure[0] = 0;
    end(sim);
}

/* Its disk says it: there is no other to ask before the record names it. */
static void a_restart_does_not_end_a_quarantine(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    propose(sim, 1, 1);
    rep_sim_run(sim, 100);
    spoil(sim, 2);
    compare_for_a_while(sim, 1);
    rep_sim_crash(sim, 2);
    rep_sim_restart(sim, 2);
    assert_true(quarantined(sim, 2));
    promote(sim, 2, 3);
    assert_int_equal(role(sim, 2), REP_FOLLOWER);
    /* Nor do later promises. */
    promote(sim, 3, 3);
    assert_int_equal(role(sim, 3), REP_OWNER);
    rep_sim_crash(sim, 2);
    rep_sim_restart(sim, 2);
    assert_true(quarantined(sim, 2));
    sim->failure[0] = 0;
    end(sim);
}

static void two_replicas_that_differ_are_told_and_left_alone(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    propose(sim, 1, 1);
    rep_sim_run(sim, 100);
    isolate(sim, 3, true);
    spoil(sim, 2);
    compare_for_a_while(sim, 1);
    assert_false(quarantined(sim, 1));
    assert_false(quarantined(sim, 2));
    assert_int_equal(role(sim, 1), REP_OWNER);
    /* The third one decides. */
    isolate(sim, 3, false);
    compare_for_a_while(sim, 1);
    assert_false(quarantined(sim, 1));
    assert_true(quarantined(sim, 2));
    end(sim);
}

/* It differs from all, and so from those who are right: with one more that is wrong they were a
 * majority against the owner, and in turn against each other. */
static void one_that_is_quarantined_is_no_witness(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    propose(sim, 1, 1);
    rep_sim_run(sim, 100);
    spoil(sim, 2);
    compare_for_a_while(sim, 1);
    assert_true(quarantined(sim, 2));
    spoil(sim, 3);
    compare_for_a_while(sim, 1);
    assert_int_equal(role(sim, 1), REP_OWNER);
    assert_false(quarantined(sim, 1) || quarantined(sim, 3));
    /* A later owner knows it by its word alone. */
    promote(sim, 3, 3);
    compare_for_a_while(sim, 3);
    assert_int_equal(role(sim, 3), REP_OWNER);
    assert_false(quarantined(sim, 1) || quarantined(sim, 3));
    end(sim);
}

/* All in other ways: none of them is one of a majority. */
static void spoil_as(struct rep_sim *sim, uint64_t id, uint8_t how)
{
    sim->nodes[id - 1].applied.outcome.bytes[0] ^= how;
}

/* Two that differ from the owner, and from each other, say nothing about whose outcomes are right.
 */
static void those_who_differ_from_each_other_outvote_no_one(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    propose(sim, 1, 1);
    rep_sim_run(sim, 100);
    spoil_as(sim, 2, 1);
    spoil_as(sim, 3, 2);
    compare_for_a_while(sim, 1);
    assert_int_equal(role(sim, 1), REP_OWNER);
    assert_false(quarantined(sim, 1) || quarantined(sim, 2) || quarantined(sim, 3));
    /* Nor does another owner change that: it meets the same. */
    promote(sim, 2, 3);
    compare_for_a_while(sim, 2);
    assert_int_equal(role(sim, 2), REP_OWNER);
    assert_false(quarantined(sim, 1) || quarantined(sim, 2) || quarantined(sim, 3));
    end(sim);
}

/* Of five, three with three outcomes differ from the two who are right: no majority agrees. */
static void a_majority_agrees_with_each_other_before_anyone_is_judged(void **state)
{
    struct rep_sim *sim = begin(5);
    (void)state;

    promote(sim, 1, 5);
    propose(sim, 1, 1);
    rep_sim_run(sim, 100);
    spoil_as(sim, 3, 1);
    spoil_as(sim, 4, 2);
    spoil_as(sim, 5, 4);
    compare_for_a_while(sim, 1);
    assert_int_equal(role(sim, 1), REP_OWNER);
    for (uint64_t id = 1; id <= 5; id++)
        assert_false(quarantined(sim, id));
    end(sim);
}

static void three_of_one_mind_of_five_judge_the_owner_and_another_one(void **state)
{
    struct rep_sim *sim = begin(5);
    (void)state;

    promote(sim, 1, 5);
    propose(sim, 1, 1);
    rep_sim_run(sim, 100);
    spoil_as(sim, 1, 1);
    spoil_as(sim, 2, 2);
    compare_for_a_while(sim, 1);
    assert_true(quarantined(sim, 1));
    assert_int_equal(role(sim, 1), REP_FOLLOWER);
    promote(sim, 3, 5);
    compare_for_a_while(sim, 3);
    assert_int_equal(role(sim, 3), REP_OWNER);
    assert_true(quarantined(sim, 2));
    assert_false(quarantined(sim, 3) || quarantined(sim, 4) || quarantined(sim, 5));
    end(sim);
}

static void rows_of_another_end_a_quarantine(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    sim->limits.recent_bytes_max = 4096;
    for (uint64_t id = 1; id <= 3; id++) {
        rep_sim_crash(sim, id);
        rep_sim_restart(sim, id);
    }
    promote(sim, 1, 3);
    propose(sim, 1, 1);
    rep_sim_run(sim, 100);
    spoil(sim, 3);
    compare_for_a_while(sim, 1);
    rep_sim_crash(sim, 3);
    /* More than the owner remembers outcomes of: what the snapshot came to says nothing to it. */
    for (uint32_t i = 0; i < 6; i++) {
        propose(sim, 1, 100);
        rep_sim_run(sim, 100);
    }
    sim_disk_checkpoint(&sim->nodes[0].disk, 200);
    sim_disk_cut(&sim->nodes[0].disk, 200);
    rep_sim_restart(sim, 3);
    rep_sim_run(sim, 200);
    assert_true(rep_member_needs_snapshot(rep_sim_rep(sim, 1), 3));
    assert_true(quarantined(sim, 3));
    rep_sim_snapshot(sim, 1, 3);
    rep_sim_run(sim, 300);
    compare_for_a_while(sim, 1);
    assert_false(quarantined(sim, 3));
    promote(sim, 3, 3);
    assert_int_equal(role(sim, 3), REP_OWNER);
    end(sim);
}

/* 2 is quarantined and has the longest log, 3 was away, and both logs of 1 and 2 are cut. */
static struct rep_sim *begin_behind_a_quarantined_one(void)
{
    struct rep_sim *sim = begin(3);

    sim->limits.recent_bytes_max = 4096;
    for (uint64_t id = 1; id <= 3; id++) {
        rep_sim_crash(sim, id);
        rep_sim_restart(sim, id);
    }
    promote(sim, 1, 3);
    propose(sim, 1, 1);
    rep_sim_run(sim, 100);
    spoil(sim, 2);
    compare_for_a_while(sim, 1);
    assert_true(quarantined(sim, 2));
    rep_sim_crash(sim, 3);
    propose(sim, 1, 200);
    rep_sim_run(sim, 200);
    for (uint64_t id = 1; id <= 2; id++) {
        sim_disk_checkpoint(&sim->nodes[id - 1].disk, 200);
        sim_disk_cut(&sim->nodes[id - 1].disk, 200);
        rep_sim_crash(sim, id);
    }
    rep_sim_restart(sim, 2);
    rep_sim_restart(sim, 3);
    sim->failure[0] = 0;
    return sim;
}

static void a_promotion_says_that_only_a_quarantined_one_has_the_rows(void **state)
{
    struct rep_sim *sim = begin_behind_a_quarantined_one();
    (void)state;

    promote(sim, 3, 3);
    rep_sim_run(sim, 300);
    assert_int_equal(role(sim, 3), REP_ADOPTING);
    assert_true(rep_snapshot_source(rep_sim_rep(sim, 3)) == 0);
    assert_true(rep_wants_rows(rep_sim_rep(sim, 3)));
    /* Another one comes, and has them. */
    rep_sim_restart(sim, 1);
    rep_sim_run(sim, 1000);
    assert_true(rep_snapshot_source(rep_sim_rep(sim, 3)) == 1);
    assert_false(rep_wants_rows(rep_sim_rep(sim, 3)));
    rep_sim_snapshot(sim, 1, 3);
    promote(sim, 3, 3);
    rep_sim_run(sim, 1000);
    assert_int_equal(role(sim, 3), REP_OWNER);
    sim->failure[0] = 0;
    end(sim);
}

/* The log may be a quarantined one's, which is right; the rows are not. */
static void a_promotion_takes_rows_from_another_than_a_quarantined_one(void **state)
{
    struct rep_sim *sim = begin_behind_a_quarantined_one();
    (void)state;

    rep_sim_restart(sim, 1);
    promote(sim, 3, 3);
    for (uint32_t i = 0; i < 200; i++) {
        rep_sim_run(sim, 10);
        assert_true(rep_snapshot_source(rep_sim_rep(sim, 3)) != 2);
        assert_false(rep_wants_rows(rep_sim_rep(sim, 3)));
    }
    assert_true(rep_snapshot_source(rep_sim_rep(sim, 3)) == 1);
    rep_sim_snapshot(sim, 1, 3);
    promote(sim, 3, 3);
    rep_sim_run(sim, 1000);
    assert_int_equal(role(sim, 3), REP_OWNER);
    sim->failure[0] = 0;
    end(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outcomes_that_differ_are_noticed),
        cmocka_unit_test(follower_that_differs_from_a_majority_stores_votes_and_never_owns),
        cmocka_unit_test(owner_that_differs_from_a_majority_steps_down),
        cmocka_unit_test(a_restart_does_not_end_a_quarantine),
        cmocka_unit_test(two_replicas_that_differ_are_told_and_left_alone),
        cmocka_unit_test(one_that_is_quarantined_is_no_witness),
        cmocka_unit_test(those_who_differ_from_each_other_outvote_no_one),
        cmocka_unit_test(a_majority_agrees_with_each_other_before_anyone_is_judged),
        cmocka_unit_test(three_of_one_mind_of_five_judge_the_owner_and_another_one),
        cmocka_unit_test(rows_of_another_end_a_quarantine),
        cmocka_unit_test(a_promotion_says_that_only_a_quarantined_one_has_the_rows),
        cmocka_unit_test(a_promotion_takes_rows_from_another_than_a_quarantined_one),
        cmocka_unit_test(damaged_replica_stores_but_neither_votes_nor_serves),
        cmocka_unit_test(an_owner_is_known_though_a_removed_replica_told_the_epoch_first),
        cmocka_unit_test(damaged_replica_trusts_a_confirmed_record_alone),
        cmocka_unit_test(damaged_replica_that_was_buried_already_is_told_once_more),
        cmocka_unit_test(removed_replica_that_is_named_again_keeps_its_log),
        cmocka_unit_test(owner_declines_an_epoch_that_it_had_in_another_life),
        cmocka_unit_test(messages_of_strangers_are_ignored),
        cmocka_unit_test(owner_is_heard_by_its_heartbeats),
        cmocka_unit_test(replica_that_starts_counts_its_owners_silence_from_there),
        cmocka_unit_test(same_seed_replays_the_same_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
