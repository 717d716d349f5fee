#include "coordinator/core/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/cluster/shard_change.h"

#define SHARDS 8u

static bool names(const struct shard_record *record, uint64_t id)
{
    return shard_record_has_member(record, id) || record->learner == id;
}

static uint32_t named_count(struct world *world, uint64_t id)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < SHARDS; i++) {
        struct shard_record record = world_shard(world, i);

        count += names(&record, id);
    }
    return count;
}

static uint32_t open_count(struct world *world)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < SHARDS; i++) {
        struct shard_record record = world_shard(world, i);

        count += shard_change_is_open(&record);
    }
    return count;
}

/* Node 4 takes the place of node 1. */
static const struct shard_wish moved = { .member_count = 3, .members = { 4, 2, 3 } };

static struct world *world_of_four(void)
{
    struct world *world = world_new();

    world_start(world);
    world_node_up(world, 4, 1);
    world_run(world, 200);
    return world;
}

static void a_shard_is_moved_step_by_step_and_the_wish_is_taken_away(void **state)
{
    struct world *world = world_of_four();

    (void)state;
    world->learner_lag = 1000;
    world_wish_shard(world, 5, &moved);
    uint64_t epoch = world_shard(world, 5).epoch;
    world_run(world, 2000);
    struct shard_record record = world_shard(world, 5);
    assert_true(record.learner == 4 && record.leaving == 1 && record.epoch == epoch + 1);
    world->learner_lag = 3;
    world_run(world, 1000);
    record = world_shard(world, 5);
    assert_int_equal(record.phase, SHARD_STABLE);
    assert_int_equal(record.epoch, epoch + 3);
    assert_int_equal(record.config, 3);
    assert_false(names(&record, 1));
    assert_true(names(&record, 2) && names(&record, 3) && names(&record, 4));
    assert_false(world_has(world, cluster_key_shard_wish("test", 5)));
    assert_int_equal(world_stats(world).changes_done, 1);
    assert_int_equal(named_count(world, 4), 1);
    world_free(world);
}

/* Numbers of configurations are not given twice, be it that etcd was restored from a backup. */
static void old_members_are_left_once_new_ones_have_their_documents(void **state)
{
    struct world *world = world_of_four();

    (void)state;
    world->documents_lacking = 1;
    world_wish_shard(world, 5, &moved);
    world_run(world, 3000);
    struct shard_record record = world_shard(world, 5);
    assert_int_equal(record.phase, SHARD_JOINT);
    world->documents_lacking = 0;
    world_run(world, 1000);
    record = world_shard(world, 5);
    assert_int_equal(record.phase, SHARD_STABLE);
    assert_true(names(&record, 4) && !names(&record, 1));
    world_free(world);
}

static void members_change_once_a_majority_has_said_what_it_knows(void **state)
{
    struct world *world = world_of_four();

    (void)state;
    world->mute_node = 2;
    world->unstarted = true;
    world_node_down(world, 1);
    world_replace_coordinator(world);
    world_elect(world);
    world_wish_shard(world, 5, &moved);
    world_run(world, 2000);
    assert_int_equal(world_shard(world, 5).learner, 0); /* One of three can tell. */
    assert_int_equal(world_owned(world, 1), 0);
    world->mute_node = 0; /* It is whole again, and is asked again. */
    world_run(world, 2000);
    assert_int_equal(world_shard(world, 5).learner, 4);

    world->mute_node = 2; /* The next coordinator goes on with it as carefully. */
    world->unstarted = false;
    world_replace_coordinator(world);
    world_elect(world);
    world_run(world, 2000);
    assert_int_equal(world_shard(world, 5).learner, 4);
    world->mute_node = 0;
    world_run(world, 2000);
    assert_int_equal(world_shard(world, 5).config, 3);
    world_free(world);
}

static void nothing_goes_on_before_the_owner_of_this_epoch_has_started(void **state)
{
    struct world *world = world_of_four();

    (void)state;
    world->unstarted = true;
    world_wish_shard(world, 5, &moved);
    world_run(world, 3000);
    assert_int_equal(world_shard(world, 5).learner, 4);
    world->unstarted = false;
    for (uint32_t i = 0; i < 500 && world_shard(world, 5).phase != SHARD_JOINT; i++)
        world_run(world, 20);
    assert_int_equal(world_shard(world, 5).phase, SHARD_JOINT);
    world->unstarted = true;
    world_run(world, 3000);
    assert_int_equal(world_shard(world, 5).phase, SHARD_JOINT);
    world->unstarted = false;
    world_run(world, 1000);
    assert_int_equal(world_shard(world, 5).phase, SHARD_STABLE);
    world_free(world);
}

static void a_removed_node_gives_up_every_place_few_at_a_time(void **state)
{
    struct world *world = world_of_four();

    (void)state;
    world_wish_node(world, 1, NODE_REMOVE);
    for (uint32_t i = 0; i < 1000 && named_count(world, 1) > 0; i++) {
        world_run(world, 20);
        assert_in_range(open_count(world), 0, world->limits.changes_max);
    }
    world_run(world, 500);
    assert_int_equal(named_count(world, 1), 0);
    assert_int_equal(named_count(world, 4), SHARDS);
    assert_int_equal(world_owned(world, 1), 0);
    assert_int_equal(world_stats(world).changes_done, SHARDS);
    world_node_down(world, 1);
    world_run(world, 500);
    assert_true(world_has(world, cluster_key_node_wish("test", 1)));
    world->limits.removed_kept = 0;
    world_depose(world);
    world_replace_coordinator(world);
    world_elect(world);
    world_run(world, 500);
    assert_false(world_has(world, cluster_key_node_wish("test", 1)));
    world_free(world);
}

/* Those that are on their way to an etcd that does not answer will all be carried out. */
static void no_more_changes_than_allowed_begin_while_etcd_is_silent(void **state)
{
    struct world *world = world_of_four();

    (void)state;
    world_wish_node(world, 1, NODE_REMOVE);
    world->fault = WORLD_SILENT;
    world_run(world, 1000);
    assert_int_equal(open_count(world), 0);
    world->fault = WORLD_WELL;
    for (uint32_t i = 0; i < 1000 && named_count(world, 1) > 0; i++) {
        world_run(world, 20);
        assert_in_range(open_count(world), 0, world->limits.changes_max);
    }
    assert_int_equal(named_count(world, 1), 0);
    world_free(world);
}

static void a_dead_node_is_replaced(void **state)
{
    struct world *world = world_of_four();

    (void)state;
    world_node_down(world, 2);
    world_run(world, 5000);
    assert_int_equal(named_count(world, 2), SHARDS);
    world_wish_node(world, 2, NODE_REMOVE);
    world_run(world, 10000);
    assert_int_equal(named_count(world, 2), 0);
    assert_int_equal(named_count(world, 4), SHARDS);
    world_free(world);
}

static void nobody_goes_while_nobody_can_come(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    world_wish_node(world, 1, NODE_REMOVE);
    world_run(world, 10000);
    assert_int_equal(named_count(world, 1), SHARDS);
    assert_int_equal(world_owned(world, 1), 0);
    world_node_up(world, 4, 1);
    world_run(world, 10000);
    assert_int_equal(named_count(world, 1), 0);
    world_free(world);
}

static void a_change_waits_for_both_majorities(void **state)
{
    struct world *world = world_of_four();

    (void)state;
    world_node_down(world, 2);
    world_node_down(world, 3);
    world_wish_shard(world, 5, &moved);
    world_run(world, 3000);
    assert_int_equal(open_count(world), 0);
    world_node_up(world, 2, 2);
    world_run(world, 3000);
    struct shard_record record = world_shard(world, 5);
    assert_true(names(&record, 4) && !names(&record, 1));
    world_free(world);
}

static void a_wish_that_keeps_a_node_removed_since_keeps_nobody_waiting(void **state)
{
    static const struct shard_wish fewer = { .member_count = 2, .members = { 1, 2 } };
    struct world *world = world_of_four();

    (void)state;
    world_node_down(world, 1);
    world_wish_shard(world, 5, &fewer);
    world_wish_node(world, 1, NODE_REMOVE);
    world_run(world, 3000);
    struct shard_record record = world_shard(world, 5);
    assert_false(names(&record, 1));
    assert_int_equal(record.member_count, 3);
    assert_false(world_has(world, cluster_key_shard_wish("test", 5)));
    world_free(world);
}

static void a_change_is_given_up_when_who_comes_is_gone(void **state)
{
    struct world *world = world_of_four();

    (void)state;
    world->learner_lag = 1000;
    world_wish_shard(world, 5, &moved);
    world_run(world, 1000);
    assert_int_equal(world_shard(world, 5).learner, 4);
    world_node_down(world, 4);
    world_run(world, world->limits.change_abort_ms - 500);
    assert_int_equal(world_shard(world, 5).learner, 4);
    world_run(world, 1000);
    struct shard_record record = world_shard(world, 5);
    assert_false(shard_change_is_open(&record));
    assert_true(names(&record, 1) && record.config == 2);
    assert_false(world_has(world, cluster_key_shard_wish("test", 5)));
    assert_int_equal(world_stats(world).changes_aborted, 1);
    world_free(world);
}

/* No node comes, and one that stays is lost: those who were to go serve again. */
static void a_removal_is_given_up_when_the_rest_has_no_majority(void **state)
{
    static const struct shard_wish fewer = { .member_count = 2, .members = { 1, 2 } };
    struct world *world = world_of_four();

    (void)state;
    world->documents_lacking = 1; /* The joint phase goes on. */
    world_wish_shard(world, 5, &fewer);
    world_run(world, 1000);
    assert_int_equal(world_shard(world, 5).new_member_count, 2);
    world_node_down(world, 2);
    world_run(world, world->limits.change_abort_ms - 500);
    assert_int_equal(world_shard(world, 5).new_member_count, 2);
    world_run(world, 2000);
    struct shard_record record = world_shard(world, 5);
    assert_false(shard_change_is_open(&record));
    assert_int_equal(record.member_count, 3);
    assert_true(names(&record, 1) && names(&record, 3));
    world_free(world);
}

static void a_wish_waits_for_a_newcomer_that_is_away_for_a_moment(void **state)
{
    struct world *world = world_of_four();

    (void)state;
    world_node_down(world, 4);
    world_wish_shard(world, 5, &moved);
    world_run(world, 1000);
    assert_int_equal(open_count(world), 0);
    assert_true(world_has(world, cluster_key_shard_wish("test", 5)));
    world_node_up(world, 4, 2);
    world_run(world, 3000);
    struct shard_record record = world_shard(world, 5);
    assert_true(names(&record, 4) && !names(&record, 1));
    /* One that stays away is not waited for. */
    world_node_down(world, 1);
    world_wish_shard(world, 6, &(struct shard_wish){ .member_count = 3, .members = { 1, 2, 4 } });
    world_wish_shard(world, 5, &(struct shard_wish){ .member_count = 3, .members = { 1, 2, 3 } });
    world_run(world, world->limits.change_abort_ms - 500);
    assert_true(world_has(world, cluster_key_shard_wish("test", 5)));
    world_run(world, 1000);
    assert_false(world_has(world, cluster_key_shard_wish("test", 5)));
    world_free(world);
}

/* More shards than transactions have room for in one step, and one of the last has an open change.
 */
static void a_restore_raises_epochs_while_members_change(void **state)
{
    struct world *world = world_new();

    (void)state;
    world->limits.txns_max = 1;
    world->limits.txn_writes_max = 1;
    world_replace_coordinator(world);
    world_start(world);
    world_node_up(world, 4, 1);
    world_run(world, 2000);
    world->learner_lag = 1000;
    world_wish_shard(world, 5, &moved);
    world_run(world, 1000);
    assert_int_equal(world_shard(world, 5).learner, 4);
    world->learner_lag = 0;
    world_raise_epochs(world, 1000);
    world_run(world, 5000);
    for (uint32_t i = 0; i < SHARDS; i++)
        assert_true(world_shard(world, i).epoch > 1000);
    struct shard_record record = world_shard(world, 5);
    assert_true(names(&record, 4) && !names(&record, 1));
    world_free(world);
}

static void another_coordinator_goes_on_and_lost_answers_change_nothing(void **state)
{
    struct world *world = world_of_four();

    (void)state;
    world->learner_lag = 1000;
    world_wish_shard(world, 5, &moved);
    world_run(world, 500);
    world_depose(world);
    world_replace_coordinator(world);
    world_elect(world);
    world->learner_lag = 0;
    world->fault = WORLD_ANSWER_LOST;
    world_run(world, 300);
    world->fault = WORLD_WELL;
    world_run(world, 3000);
    struct shard_record record = world_shard(world, 5);
    assert_int_equal(record.phase, SHARD_STABLE);
    assert_true(names(&record, 4) && !names(&record, 1) && record.config == 3);
    assert_false(world_has(world, cluster_key_shard_wish("test", 5)));
    world_free(world);
}

static void a_drained_node_owns_nothing_and_holds_all_until_it_is_undrained(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    world_wish_node(world, 2, NODE_DRAIN);
    world_run(world, 1000);
    assert_int_equal(world_owned(world, 2), 0);
    assert_int_equal(named_count(world, 2), SHARDS);
    world_run(world, 30000);
    assert_int_equal(world_owned(world, 2), 0);
    world_unwish_node(world, 2);
    world_run(world, 30000);
    assert_in_range(world_owned(world, 2), 2, 3);
    world_free(world);
}

static void who_comes_is_of_a_zone_that_nobody_else_is_of(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_elect(world);
    world_node_up_in(world, 1, 1, "a");
    world_node_up_in(world, 2, 1, "b");
    world_node_up_in(world, 3, 1, "c");
    world_run(world, 1000);
    for (uint64_t id = 4; id <= 9; id++)
        world_node_up_in(world, id, 1, id % 3 == 0 ? "c" : id % 3 == 1 ? "a" : "b");
    world_wish_node(world, 3, NODE_REMOVE);
    world_run(world, 15000);
    assert_int_equal(named_count(world, 3), 0);
    assert_int_equal(named_count(world, 6) + named_count(world, 9), SHARDS);
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shard_is_moved_step_by_step_and_the_wish_is_taken_away),
        cmocka_unit_test(old_members_are_left_once_new_ones_have_their_documents),
        cmocka_unit_test(members_change_once_a_majority_has_said_what_it_knows),
        cmocka_unit_test(nothing_goes_on_before_the_owner_of_this_epoch_has_started),
        cmocka_unit_test(a_removed_node_gives_up_every_place_few_at_a_time),
        cmocka_unit_test(no_more_changes_than_allowed_begin_while_etcd_is_silent),
        cmocka_unit_test(a_dead_node_is_replaced),
        cmocka_unit_test(nobody_goes_while_nobody_can_come),
        cmocka_unit_test(a_change_waits_for_both_majorities),
        cmocka_unit_test(a_wish_that_keeps_a_node_removed_since_keeps_nobody_waiting),
        cmocka_unit_test(a_change_is_given_up_when_who_comes_is_gone),
        cmocka_unit_test(a_removal_is_given_up_when_the_rest_has_no_majority),
        cmocka_unit_test(a_wish_waits_for_a_newcomer_that_is_away_for_a_moment),
        cmocka_unit_test(a_restore_raises_epochs_while_members_change),
        cmocka_unit_test(another_coordinator_goes_on_and_lost_answers_change_nothing),
        cmocka_unit_test(a_drained_node_owns_nothing_and_holds_all_until_it_is_undrained),
        cmocka_unit_test(who_comes_is_of_a_zone_that_nobody_else_is_of),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
