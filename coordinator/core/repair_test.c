#include "coordinator/core/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "runtime/cluster/shard_change.h"

#define SHARDS 8u
#define WAIT   20000u /* More than every pause of a repair. */

static bool names(struct world *world, uint32_t shard, uint64_t id)
{
    struct shard_record record = world_shard(world, shard);

    return shard_record_has_member(&record, id) || record.learner == id;
}

static uint32_t members(struct world *world, uint32_t shard)
{
    return world_shard(world, shard).member_count;
}

/* Node 3 restarted, and found its replica of shard 5 damaged. */
static struct world *world_damaged(void)
{
    struct world *world = world_new();

    world_start(world);
    world_run(world, WAIT);
    world_node_damaged(world, 3, 2, 5);
    return world;
}

static void a_damaged_replica_leaves_and_comes_back(void **state)
{
    struct world *world = world_damaged();
    struct shard_wish wish;

    (void)state;
    world_run(world, WAIT);
    assert_int_equal(members(world, 5), 2);
    assert_false(names(world, 5, 3));
    assert_true(world_shard_wish(world, 5, &wish) && wish.repair == 3);
    assert_int_equal(world_stats(world).repairs_begun, 1);
    assert_int_equal(world_stats(world).repairs_open, 1);
    world_node_damaged(world, 3, 2, UINT32_MAX);
    world_run(world, 2000);
    assert_int_equal(members(world, 5), 3);
    assert_true(names(world, 5, 3));
    assert_int_equal(world_shard(world, 5).phase, SHARD_STABLE);
    assert_false(world_shard_wish(world, 5, &wish));
    assert_int_equal(world_stats(world).repairs_done, 1);
    assert_int_equal(world_stats(world).repairs_given_up, 0);
    world_free(world);
}

static void a_moment_passes_first(void **state)
{
    struct world *world = world_damaged();

    (void)state;
    world_run(world, world->limits.repair_wait_ms - 500);
    assert_int_equal(members(world, 5), 3);
    assert_int_equal(world_stats(world).replicas_damaged, 1);
    world_free(world);
}

static void an_upgrade_is_waited_for_but_not_for_ever(void **state)
{
    struct world *world = world_new();

    (void)state;
    world->limits.repair_upgrade_ms = WAIT;
    world_replace_coordinator(world);
    world_start(world);
    world->version = "newer";
    world_node_up(world, 1, 2);
    world_run(world, 2000);
    world->version = NULL;
    world_node_damaged(world, 3, 2, 5);
    world_run(world, WAIT - 2000);
    assert_int_equal(members(world, 5), 3);
    world_run(world, 4000);
    assert_int_equal(members(world, 5), 2);
    world_free(world);
}

static void it_owns_nothing_meanwhile(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    world_run(world, WAIT);
    uint64_t owner = world_shard(world, 5).owner;

    world_node_damaged(world, owner, 2, 5);
    for (uint32_t i = 0; i < 500; i++) {
        world_run(world, 20);
        assert_true(world_shard(world, 5).owner != owner);
    }
    world_free(world);
}

static void nobody_leaves_while_another_is_away(void **state)
{
    struct world *world = world_damaged();

    (void)state;
    world_node_down(world, 1);
    world_run(world, WAIT);
    assert_int_equal(members(world, 5), 3);
    assert_int_equal(world_shard(world, 5).phase, SHARD_STABLE);
    world_node_up(world, 1, 2);
    world_run(world, WAIT);
    assert_int_equal(members(world, 5), 2);
    world_free(world);
}

static void two_damaged_ones_are_left_alone(void **state)
{
    struct world *world = world_damaged();

    (void)state;
    world_node_damaged(world, 2, 2, 5);
    world_run(world, 3 * WAIT);
    assert_int_equal(members(world, 5), 3);
    assert_int_equal(world_stats(world).changes_begun, 0);
    assert_int_equal(world_stats(world).replicas_damaged, 2);
    assert_int_equal(world_shard(world, 5).owner, 1);
    world_free(world);
}

static void nobody_leaves_while_another_is_behind(void **state)
{
    struct world *world = world_damaged();

    (void)state;
    world->member_lag = 1000;
    world_run(world, WAIT);
    assert_int_equal(members(world, 5), 3);
    world->member_lag = 3;
    world_run(world, 5000);
    assert_int_equal(members(world, 5), 2);
    world_free(world);
}

static void two_members_cannot_be_repaired(void **state)
{
    static const struct shard_wish two = { .member_count = 2, .members = { 1, 3 } };
    struct world *world = world_new();

    (void)state;
    world_start(world);
    world_wish_shard(world, 5, &two);
    for (uint32_t i = 0; i < 500 && members(world, 5) != 2; i++)
        world_run(world, 20);
    world_node_down(world, 2); /* Or it would be made a third. */
    world_node_damaged(world, 3, 2, 5);
    world_run(world, 3 * WAIT);
    assert_int_equal(members(world, 5), 2);
    assert_int_equal(world_stats(world).repairs_begun, 0);
    world_free(world);
}

/* An operator may wish it who sees an etcd from a backup, where the shard has fewer members. */
static void a_wish_for_two_of_which_one_is_damaged_does_not_stop_its_repair(void **state)
{
    static const struct shard_wish two = { .member_count = 2, .members = { 1, 3 } };
    struct world *world = world_damaged();
    struct shard_wish wish;

    (void)state;
    world_wish_shard(world, 5, &two);
    world_run(world, WAIT);
    assert_true(names(world, 5, 2));
    assert_true(world_shard_wish(world, 5, &wish) && wish.repair == 3);
    world_node_damaged(world, 3, 2, UINT32_MAX);
    world_run(world, 3000);
    assert_int_equal(members(world, 5), 3);
    assert_int_equal(world_stats(world).repairs_done, 1);
    world_free(world);
}

static void another_coordinator_knows_which_half_is_done(void **state)
{
    struct world *world = world_damaged();
    struct shard_wish wish;

    (void)state;
    world_node_up(world, 4, 1); /* Would take the place, were the wish forgotten. */
    for (uint32_t i = 0; i < 1000 && members(world, 5) != 2; i++)
        world_run(world, 20);
    world_depose(world);
    world_replace_coordinator(world);
    world_elect(world);
    world_run(world, 2000);
    assert_true(world_shard_wish(world, 5, &wish));
    assert_false(names(world, 5, 4));
    world_node_damaged(world, 3, 2, UINT32_MAX);
    world_run(world, 3000);
    assert_true(names(world, 5, 3));
    assert_false(names(world, 5, 4));
    assert_int_equal(members(world, 5), 3);
    assert_int_equal(world_stats(world).repairs_done, 1);
    world_free(world);
}

static void another_takes_the_place_of_one_who_does_not_come_back(void **state)
{
    struct world *world = world_damaged();
    struct shard_wish wish;

    (void)state;
    for (uint32_t i = 0; i < 1000 && members(world, 5) != 2; i++)
        world_run(world, 20);
    world_node_down(world, 3);
    world_node_up(world, 4, 1);
    world_run(world, world->limits.change_abort_ms - 1000);
    assert_int_equal(members(world, 5), 2);
    world_run(world, 5000);
    assert_true(names(world, 5, 4));
    assert_int_equal(members(world, 5), 3);
    assert_false(world_shard_wish(world, 5, &wish));
    assert_int_equal(world_stats(world).repairs_given_up, 1);
    world_free(world);
}

static void nobody_comes_back_whose_place_is_taken(void **state)
{
    static const struct shard_wish moved = { .member_count = 3, .members = { 1, 2, 4 } };
    struct world *world = world_damaged();
    struct shard_wish repair;

    (void)state;
    world_node_up(world, 4, 1);
    for (uint32_t i = 0; i < 1000 && members(world, 5) != 2; i++)
        world_run(world, 20);
    assert_true(world_shard_wish(world, 5, &repair));
    world_wish_shard(world, 5, &moved);
    world_run(world, 3000);
    assert_true(names(world, 5, 4));
    world_wish_shard(world, 5, &repair); /* By a coordinator that had not heard of it. */
    world_node_damaged(world, 3, 2, UINT32_MAX);
    world_run(world, 3000);
    assert_int_equal(members(world, 5), 3);
    assert_false(names(world, 5, 3));
    assert_false(world_shard_wish(world, 5, &repair));
    world_free(world);
}

static void a_learner_that_is_damaged_learns_nothing(void **state)
{
    static const struct shard_wish moved = { .member_count = 3, .members = { 4, 2, 3 } };
    struct world *world = world_new();

    (void)state;
    world_start(world);
    world_node_up(world, 4, 1);
    world->learner_lag = 1000;
    world_run(world, 200);
    world_wish_shard(world, 5, &moved);
    world_run(world, 1000);
    assert_int_equal(world_shard(world, 5).learner, 4);
    world_node_damaged(world, 4, 2, 5);
    world_run(world, 1000);
    assert_int_equal(world_shard(world, 5).learner, 0);
    assert_true(names(world, 5, 1));
    world_free(world);
}

static void lost_answers_change_nothing(void **state)
{
    struct world *world = world_damaged();

    (void)state;
    world->fault = WORLD_ANSWER_LOST;
    world_run(world, WAIT);
    world->fault = WORLD_WELL;
    world_run(world, 3000);
    assert_int_equal(members(world, 5), 2);
    world_node_damaged(world, 3, 2, UINT32_MAX);
    world->fault = WORLD_ANSWER_LOST;
    world_run(world, 2000);
    world->fault = WORLD_WELL;
    world_run(world, 3000);
    assert_int_equal(members(world, 5), 3);
    assert_true(names(world, 5, 3));
    world_free(world);
}

static void a_removed_node_is_not_brought_back(void **state)
{
    struct world *world = world_damaged();

    (void)state;
    world_node_up(world, 4, 1);
    for (uint32_t i = 0; i < 1000 && members(world, 5) != 2; i++)
        world_run(world, 20);
    world_wish_node(world, 3, NODE_REMOVE);
    world_run(world, WAIT);
    for (uint32_t i = 0; i < SHARDS; i++)
        assert_false(names(world, i, 3));
    assert_true(names(world, 5, 4));
    world_free(world);
}

/* An operator asks that node 3's replica of shard 5 is rebuilt. */
static void wish_rebuild(struct world *world)
{
    struct shard_record record = world_shard(world, 5);
    struct shard_wish wish = { .member_count = record.member_count,
                               .repair = 3,
                               .config = record.config };

    for (uint32_t i = 0; i < record.member_count; i++)
        wish.members[i] = record.members[i];
    world_wish_shard(world, 5, &wish);
}

static struct world *world_quarantined(void)
{
    struct world *world = world_new();

    world_start(world);
    world_run(world, WAIT);
    world_node_quarantined(world, 3, 1, 5);
    world_run(world, WAIT);
    return world;
}

static void a_quarantined_replica_leaves_only_when_it_is_asked_for(void **state)
{
    struct world *world = world_quarantined();
    struct shard_wish wish;

    (void)state;
    assert_true(names(world, 5, 3));
    assert_false(world_shard_wish(world, 5, &wish));
    wish_rebuild(world);
    world_run(world, 2000);
    assert_int_equal(members(world, 5), 2);
    assert_false(names(world, 5, 3));
    world_replace_coordinator(world); /* Another one goes on. */
    world_elect(world);
    world_run(world, 2000);
    assert_false(names(world, 5, 3)); /* It has not dropped its rows yet. */
    world_node_quarantined(world, 3, 1, UINT32_MAX);
    world_run(world, 2000);
    assert_int_equal(members(world, 5), 3);
    assert_true(names(world, 5, 3));
    assert_int_equal(world_shard(world, 5).phase, SHARD_STABLE);
    assert_false(world_shard_wish(world, 5, &wish));
    assert_int_equal(world_stats(world).repairs_done, 1);
    world_free(world);
}

/* It came back, and differs again: another program would go round for ever. */
static void a_replica_that_differs_again_is_not_rebuilt_twice(void **state)
{
    struct world *world = world_quarantined();
    struct shard_wish wish;

    (void)state;
    wish_rebuild(world);
    world_run(world, 2000);
    assert_false(names(world, 5, 3));
    world->learner_lag = UINT64_MAX;
    world_node_quarantined(world, 3, 1, UINT32_MAX);
    world_run(world, 1000);
    assert_int_equal(world_shard(world, 5).learner, 3);
    world_node_quarantined(world, 3, 1, 5);
    world->learner_lag = 0;
    world_run(world, WAIT);
    assert_true(names(world, 5, 3));
    assert_false(world_shard_wish(world, 5, &wish));
    assert_int_equal(world_stats(world).repairs_given_up, 1);
    assert_int_equal(world_stats(world).repairs_begun, 1);
    world_free(world);
}

/* It was to be whole, and no more: that it is wrong is for an operator to see. */
static void a_damaged_replica_that_comes_back_wrong_is_not_rebuilt_again(void **state)
{
    struct world *world = world_new();
    struct shard_wish wish;

    (void)state;
    world_start(world);
    world_run(world, WAIT);
    world_node_damaged(world, 3, 1, 5);
    world_run(world, WAIT);
    assert_false(names(world, 5, 3));
    world->learner_lag = UINT64_MAX;
    world_node_damaged(world, 3, 1, UINT32_MAX);
    world_run(world, 1000);
    assert_int_equal(world_shard(world, 5).learner, 3);
    world_node_quarantined(world, 3, 1, 5);
    world->learner_lag = 0;
    world_run(world, 4 * WAIT);
    assert_true(names(world, 5, 3));
    assert_false(world_shard_wish(world, 5, &wish));
    assert_int_equal(world_stats(world).repairs_begun, 1);
    world_free(world);
}

/* Rows come from a majority of right ones: of three, both others. */
static void a_quarantined_replica_stays_while_another_one_is_quarantined(void **state)
{
    struct world *world = world_quarantined();
    struct shard_wish wish;

    (void)state;
    world_node_quarantined(world, world_shard(world, 5).owner == 1 ? 2 : 1, 1, 5);
    world_run(world, 1000);
    wish_rebuild(world);
    world_run(world, 2 * world->limits.change_abort_ms);
    assert_int_equal(members(world, 5), 3);
    assert_false(world_shard_wish(world, 5, &wish));
    assert_int_equal(world_stats(world).repairs_given_up, 1);
    world_free(world);
}

/* It would bring its wrong rows. */
static void one_that_has_not_dropped_what_it_had_does_not_come_by_any_other_way(void **state)
{
    struct world *world = world_quarantined();

    (void)state;
    wish_rebuild(world);
    world_run(world, 3 * world->limits.change_abort_ms);
    assert_int_equal(members(world, 5), 2); /* The repair was given up, too few are left, */
    assert_false(names(world, 5, 3));       /* and it is the only node that could come. */
    world_node_quarantined(world, 3, 1, UINT32_MAX);
    world_run(world, 2000);
    assert_int_equal(members(world, 5), 3);
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_damaged_replica_leaves_and_comes_back),
        cmocka_unit_test(a_moment_passes_first),
        cmocka_unit_test(an_upgrade_is_waited_for_but_not_for_ever),
        cmocka_unit_test(it_owns_nothing_meanwhile),
        cmocka_unit_test(nobody_leaves_while_another_is_away),
        cmocka_unit_test(two_damaged_ones_are_left_alone),
        cmocka_unit_test(nobody_leaves_while_another_is_behind),
        cmocka_unit_test(two_members_cannot_be_repaired),
        cmocka_unit_test(a_wish_for_two_of_which_one_is_damaged_does_not_stop_its_repair),
        cmocka_unit_test(another_coordinator_knows_which_half_is_done),
        cmocka_unit_test(another_takes_the_place_of_one_who_does_not_come_back),
        cmocka_unit_test(nobody_comes_back_whose_place_is_taken),
        cmocka_unit_test(a_learner_that_is_damaged_learns_nothing),
        cmocka_unit_test(lost_answers_change_nothing),
        cmocka_unit_test(a_removed_node_is_not_brought_back),
        cmocka_unit_test(a_quarantined_replica_leaves_only_when_it_is_asked_for),
        cmocka_unit_test(a_replica_that_differs_again_is_not_rebuilt_twice),
        cmocka_unit_test(a_damaged_replica_that_comes_back_wrong_is_not_rebuilt_again),
        cmocka_unit_test(a_quarantined_replica_stays_while_another_one_is_quarantined),
        cmocka_unit_test(one_that_has_not_dropped_what_it_had_does_not_come_by_any_other_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
