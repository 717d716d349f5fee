#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/replication/sim/rep_narrative.h"

static void orphans_of_a_deposed_owner_are_truncated(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    isolate(sim, 1, true);
    propose(sim, 1, 5);
    rep_sim_run(sim, 50);
    promote(sim, 2, 3);
    rep_sim_run(sim, 100);
    propose(sim, 2, 2);
    rep_sim_run(sim, 50);
    assert_true(last_index(sim, 1) == 6 && commit_index(sim, 1) == 1);
    isolate(sim, 1, false);
    rep_sim_run(sim, 300);
    assert_true(sim->counts.truncations == 1);
    assert_true(last_index(sim, 1) == 4);
    assert_true(rep_sim_converged(sim));
    end(sim);
}

/* A log as long as the owner's proves nothing: only what is identical is acknowledged. */
static void own_length_is_not_acknowledged(void **state)
{
    struct rep_sim *sim = begin(3);
    uint64_t matched = 0;
    uint64_t heard_ms = 0;
    (void)state;

    promote(sim, 1, 3);
    isolate(sim, 1, true);
    propose(sim, 1, 5);
    rep_sim_run(sim, 50);
    promote(sim, 2, 3);
    rep_sim_run(sim, 100);
    rep_sim_hold_disk(sim, 1, true); /* Its orphans are durable; the truth is not, yet. */
    isolate(sim, 1, false);
    rep_sim_run(sim, 300);
    assert_true(rep_member_state(rep_sim_rep(sim, 2), 1, &matched, &heard_ms));
    assert_true(matched == 0);
    rep_sim_hold_disk(sim, 1, false);
    rep_sim_run(sim, 300);
    assert_true(rep_member_state(rep_sim_rep(sim, 2), 1, &matched, &heard_ms));
    assert_true(matched == 2);
    end(sim);
}

static void repeated_and_reordered_messages_are_harmless(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    sim->faults.duplicate_per_thousand = 1000;
    sim->faults.delay_ms_max = 40;
    for (uint32_t i = 0; i < 20; i++) {
        propose(sim, 1, 5);
        rep_sim_run(sim, 10);
    }
    rep_sim_run(sim, 2000);
    assert_true(commit_index(sim, 1) == 101);
    assert_true(rep_sim_converged(sim));
    assert_true(sim->counts.truncations == 0);
    end(sim);
}

static void entries_dated_ahead_wait_for_the_clock(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    sim->nodes[1].skew_ms = -5000;
    rep_sim_cut(sim, 1, 3, true);
    propose(sim, 1, 1);
    rep_sim_run(sim, 1000);
    assert_true(commit_index(sim, 1) == 1);
    assert_true(last_index(sim, 2) == 1);
    sim->nodes[1].skew_ms = -1500; /* Within clock_ahead_ms_max. */
    rep_sim_run(sim, 500);
    assert_true(commit_index(sim, 1) == 2);
    rep_sim_cut(sim, 1, 3, false);
    rep_sim_run(sim, 500);
    assert_true(rep_sim_converged(sim));
    end(sim);
}

static void followers_commit_no_more_than_is_durable_here(void **state)
{
    struct rep_sim *sim = begin(3);
    (void)state;

    promote(sim, 1, 3);
    rep_sim_run(sim, 100);
    rep_sim_hold_disk(sim, 3, true);
    propose(sim, 1, 2);
    rep_sim_run(sim, 200);
    assert_true(commit_index(sim, 2) == 3);
    assert_true(last_index(sim, 3) == 3 && commit_index(sim, 3) == 1);
    end(sim);
}

/* The first entry of owner 2's epoch, to replica 1. */
static struct entry *start_of_version(uint32_t apply_version, const struct membership *membership,
                                      uint64_t epoch)
{
    struct start start = { .membership = *membership,
                           .generation = 1,
                           .apply_version = apply_version };
    struct buf body = { 0 };

    start_encode(&start, &body);
    struct entry *entry = entry_new(
        ENTRY_START, &(struct entry_head){ .index = 1, .dot = { epoch, 2, 1 } }, buf_slice(&body));
    buf_deinit(&body);
    return entry;
}

static void entries_of_rules_that_the_program_does_not_know_are_not_taken(void **state)
{
    struct membership membership = { .config = 1, .count = 3, .members = { 1, 2, 3 } };
    struct rep_limits limits = rep_limits_default();
    (void)state;

    for (uint32_t version = 1; version <= 2; version++) {
        struct rep_image image = {
            .votes = true, .log_first_index = 1, .apply_version = 1, .apply_version_max = 1
        };
        struct rep *rep = rep_new(5, 1, &limits, &image);
        struct entry *entry = start_of_version(version, &membership, 1);
        struct rep_message message = { .type = REP_MSG_APPEND,
                                       .shard = 5,
                                       .generation = 1,
                                       .config = 1,
                                       .epoch = 1,
                                       .owner = 2,
                                       .apply_version = version,
                                       .entries = &entry,
                                       .entry_count = 1 };
        struct rep_out out = { 0 };
        assert_int_equal(rep_step(rep,
                                  &(struct rep_event){ .type = REP_RECEIVE,
                                                       .now_ms = 1000,
                                                       .unix_ms = 1000,
                                                       .from = 2,
                                                       .message = &message },
                                  &out),
                         ERR_OK);
        assert_true(out.too_new == (version == 2));
        assert_int_equal(rep_last_index(rep), version == 1 ? 1 : 0);
        assert_int_equal(rep_apply_version(rep), 1);
        entry_unref(entry);
        rep_out_deinit(&out);
        rep_free(rep);
    }
}

/* Replica 1 hears that from owner 2, and its disk does all that it asks for. True: it promises, or
 * acknowledges, or both. */
static bool hears(struct rep *rep, struct rep_message *m, bool *ret_dropped)
{
    struct rep_event event = {
        .type = REP_RECEIVE, .now_ms = 1000, .unix_ms = 1000, .from = 2, .message = m
    };
    struct rep_out out = { 0 };

    m->shard = 5;
    m->owner = 2;
    m->apply_version = 1;
    assert_int_equal(rep_step(rep, &event, &out), ERR_OK);
    bool answers = out.write_count + out.send_count > 0;
    event.type = REP_PERSISTED;
    for (uint32_t i = 0; i < out.write_count; i++) {
        if (out.writes[i].type == REP_WRITE_PROMISE)
            *ret_dropped = out.writes[i].dropped;
        event.ticket = out.writes[i].ticket;
    }
    uint32_t done = out.write_count;

    if (event.ticket > 0)
        assert_int_equal(rep_step(rep, &event, &out), ERR_OK);
    for (uint32_t i = done; i < out.write_count; i++) {
        if (out.writes[i].type == REP_WRITE_PROMISE)
            *ret_dropped = out.writes[i].dropped;
    }
    rep_out_deinit(&out);
    return answers;
}

static struct rep_image image_of_dropped(struct promise promise)
{
    return (struct rep_image){ .votes = true,
                               .dropped = true,
                               .promise = promise,
                               .log_first_index = 1,
                               .apply_version = 1,
                               .apply_version_max = 1 };
}

/* An etcd that was restored from before its removal names it a member, without the learning that
 * others begin with. */
static void who_dropped_all_gives_no_vote_until_it_holds_all_again(void **state)
{
    struct membership membership = { .config = 1, .count = 3, .members = { 1, 2, 3 } };
    struct rep_limits limits = rep_limits_default();
    struct rep_image image = image_of_dropped((struct promise){ 1, 7, 0 });
    struct rep_message seal = { .type = REP_MSG_SEAL, .config = 1, .epoch = 8 };
    struct rep_message append = { .type = REP_MSG_APPEND, .config = 1, .epoch = 8 };
    struct entry *entry = start_of_version(1, &membership, 8);
    bool dropped = false;
    (void)state;

    struct rep *rep = rep_new(5, 1, &limits, &image);
    assert_false(hears(rep, &seal, &dropped));
    assert_true(hears(rep, &append, &dropped)); /* Its promise is above the tombstone now, */
    assert_true(dropped && rep_is_mute(rep));
    rep_free(rep);
    image.promise = (struct promise){ 1, 8, 2 };
    rep = rep_new(5, 1, &limits, &image); /* also in another life. */
    seal.epoch = 9;
    assert_false(hears(rep, &seal, &dropped));
    append.entries = &entry;
    append.entry_count = 1;
    assert_true(hears(rep, &append, &dropped));
    assert_false(hears(rep, &seal, &dropped)); /* What it holds may never be committed. */
    append.entries = NULL;
    append.entry_count = 0;
    append.prev_index = append.commit_index = append.round = 1;
    append.prev_hash = entry->hash;
    assert_true(hears(rep, &append, &dropped));
    assert_false(dropped || rep_is_mute(rep));
    assert_true(hears(rep, &seal, &dropped));
    assert_false(dropped);
    entry_unref(entry);
    rep_free(rep);
}

/* Its owner may say no more: what is committed once it is durable here is held all the same. */
static void who_dropped_all_holds_it_again_once_it_is_durable(void **state)
{
    struct membership membership = { .config = 1, .count = 3, .members = { 1, 2, 3 } };
    struct rep_limits limits = rep_limits_default();
    struct rep_image image = image_of_dropped((struct promise){ 1, 8, 2 });
    struct rep_message seal = { .type = REP_MSG_SEAL, .config = 1, .epoch = 9 };
    struct entry *entry = start_of_version(1, &membership, 8);
    struct rep_message append = { .type = REP_MSG_APPEND,
                                  .config = 1,
                                  .epoch = 8,
                                  .entries = &entry,
                                  .entry_count = 1,
                                  .commit_index = 1 };
    struct rep *rep = rep_new(5, 1, &limits, &image);
    bool dropped = true;
    (void)state;

    assert_true(hears(rep, &append, &dropped));
    assert_false(dropped || rep_is_mute(rep));
    assert_true(hears(rep, &seal, &dropped));
    assert_false(dropped);
    entry_unref(entry);
    rep_free(rep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orphans_of_a_deposed_owner_are_truncated),
        cmocka_unit_test(own_length_is_not_acknowledged),
        cmocka_unit_test(repeated_and_reordered_messages_are_harmless),
        cmocka_unit_test(entries_dated_ahead_wait_for_the_clock),
        cmocka_unit_test(followers_commit_no_more_than_is_durable_here),
        cmocka_unit_test(entries_of_rules_that_the_program_does_not_know_are_not_taken),
        cmocka_unit_test(who_dropped_all_gives_no_vote_until_it_holds_all_again),
        cmocka_unit_test(who_dropped_all_holds_it_again_once_it_is_durable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
