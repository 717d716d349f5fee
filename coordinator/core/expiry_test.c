#include "coordinator/core/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define SHARDS 8u

/* Started, and long enough elected to expire servers. */
static struct world *ready_world(uint64_t servers)
{
    struct world *world = world_new();

    world_start(world);
    world_run(world, 12000);
    for (uint64_t i = 0; i < servers; i++)
        world_server_up(world, 1000 + i);
    world_run(world, 100);
    return world;
}

static void a_gone_server_is_marked_told_to_every_shard_then_forgotten(void **state)
{
    struct world *world = ready_world(5);

    (void)state;
    world->deaf_node = 2;
    world_server_gone(world, 1001);
    world_run(world, 900);
    assert_int_equal(world_server_state(world, 1001), SERVER_LIVE); /* It may come back. */
    world_run(world, 200);
    assert_int_equal(world_server_state(world, 1001), SERVER_EXPIRING);
    world_run(world, 3000);
    assert_true(world_server_known(world, 1001)); /* Node 2 has not confirmed. */
    world->deaf_node = 0;
    world_run(world, 300);
    assert_false(world_server_known(world, 1001));
    assert_int_equal(world->calls_expire, SHARDS);
    assert_string_equal(world->lowest_live, "1-1000");
    assert_int_equal(world_stats(world).servers_expired, 1);
    assert_int_equal(world_stats(world).servers_known, 4);
    world_free(world);
}

static void the_lowest_live_server_rises_only_past_expired_ones(void **state)
{
    struct world *world = ready_world(5);

    (void)state;
    world_server_gone(world, 1000);
    world_run(world, 2000);
    assert_string_equal(world->lowest_live, "1-1001");
    world_server_gone(world, 1003);
    world_run(world, 2000);
    assert_string_equal(world->lowest_live, "1-1001");
    world_free(world);
}

static void a_server_that_is_reattached_in_time_is_kept(void **state)
{
    struct world *world = ready_world(3);

    (void)state;
    world_server_gone(world, 1001);
    world_run(world, 900);
    world_server_back(world, 1001);
    world_run(world, 5000);
    assert_int_equal(world_server_state(world, 1001), SERVER_LIVE);

    /* Re-attached while the coordinator believes it gone: the transaction compares. */
    world_server_gone(world, 1002);
    world_run(world, 500);
    world->mirror_stopped = true;
    world_server_back(world, 1002);
    world_run(world, 3000);
    assert_int_equal(world_server_state(world, 1002), SERVER_LIVE);
    assert_int_equal(world_stats(world).servers_marked, 0);
    world_free(world);
}

static void a_new_coordinator_waits_one_ttl_before_it_expires_anyone(void **state)
{
    struct world *world = ready_world(5);

    (void)state;
    world_server_gone(world, 1001);
    world_replace_coordinator(world);
    world_elect(world);
    world_run(world, 9900);
    assert_int_equal(world_server_state(world, 1001), SERVER_LIVE);
    world_run(world, 1000);
    assert_false(world_server_known(world, 1001));
    world_free(world);
}

static void another_coordinator_finishes_an_expiry_at_once(void **state)
{
    struct world *world = ready_world(5);

    (void)state;
    world->deaf_node = 2;
    world_server_gone(world, 1001);
    world_run(world, 2000);
    assert_int_equal(world_server_state(world, 1001), SERVER_EXPIRING);
    world_replace_coordinator(world);
    world_elect(world);
    world_run(world, 500);
    assert_true(world_server_known(world, 1001));
    world->deaf_node = 0;
    world_run(world, 500);
    assert_false(world_server_known(world, 1001));
    world_free(world);
}

static void expiry_survives_unknown_transactions(void **state)
{
    struct world *world = ready_world(5);

    (void)state;
    world->fault = WORLD_ANSWER_LOST;
    world_server_gone(world, 1001);
    world_run(world, 3000);
    world->fault = WORLD_WELL;
    world_run(world, 1000);
    assert_false(world_server_known(world, 1001));
    assert_int_equal(world_stats(world).transactions_open, 0);
    world_free(world);
}

static void too_many_gone_at_once_are_held_until_they_return(void **state)
{
    struct world *world = ready_world(10);

    (void)state;
    for (uint64_t i = 0; i < 4; i++)
        world_server_gone(world, 1000 + i);
    world_run(world, 60000);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(world_server_state(world, 1000 + i), SERVER_LIVE);
    assert_int_equal(world_stats(world).server_hold, 1);
    assert_int_equal(world_stats(world).server_holds, 1);
    for (uint64_t i = 0; i < 3; i++)
        world_server_back(world, 1000 + i);
    world_run(world, 2000);
    assert_int_equal(world_stats(world).server_hold, 0);
    assert_false(world_server_known(world, 1003)); /* One is no mass loss. */
    assert_true(world_server_known(world, 1000));
    world_free(world);
}

static void thirty_percent_or_fewer_than_four_are_not_held(void **state)
{
    struct world *world = ready_world(20);

    (void)state;
    for (uint64_t i = 0; i < 6; i++)
        world_server_gone(world, 1000 + i);
    world_run(world, 3000);
    assert_int_equal(world_stats(world).servers_expired, 6);
    world_free(world);

    world = ready_world(3);
    for (uint64_t i = 0; i < 3; i++)
        world_server_gone(world, 1000 + i);
    world_run(world, 3000);
    assert_int_equal(world_stats(world).servers_expired, 3);
    world_free(world);
}

static void a_hold_also_sees_servers_that_vanish_one_by_one(void **state)
{
    struct world *world = ready_world(10);

    (void)state;
    for (uint64_t i = 0; i < 10; i++) {
        world_server_gone(world, 1000 + i);
        world_run(world, 1200);
    }
    assert_int_equal(world_stats(world).server_hold, 1);
    assert_in_range(world_stats(world).servers_marked, 1, 3);
    world_free(world);
}

static void a_hold_ends_after_its_longest_time(void **state)
{
    struct world *world = ready_world(10);

    (void)state;
    for (uint64_t i = 0; i < 10; i++)
        world_server_gone(world, 1000 + i);
    world_run(world, 119000);
    assert_int_equal(world_stats(world).server_hold, 1);
    world_run(world, 4000);
    assert_int_equal(world_stats(world).servers_known, 0);
    assert_int_equal(world_stats(world).server_holds, 1);
    world_free(world);
}

static void a_policy_reaches_every_shard_again_and_again(void **state)
{
    struct world *world = ready_world(0);

    (void)state;
    assert_int_equal(world->policy_version, 1); /* The seed. */
    assert_int_equal(world->calls_policy, SHARDS);
    assert_int_equal(world_stats(world).policy_pending, 0);
    world->deaf_node = 3;
    world_set_policy(world, 2);
    world_run(world, 2000);
    assert_int_equal(world->policy_version, 2);
    assert_in_range(world_stats(world).policy_pending, 2, 3);
    world_node_down(world, 3); /* Its shards get other owners, who are told. */
    world_run(world, 1000);
    assert_int_equal(world_stats(world).policy_pending, 0);
    assert_int_equal(world->calls_policy, 2 * SHARDS);
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gone_server_is_marked_told_to_every_shard_then_forgotten),
        cmocka_unit_test(the_lowest_live_server_rises_only_past_expired_ones),
        cmocka_unit_test(a_server_that_is_reattached_in_time_is_kept),
        cmocka_unit_test(a_new_coordinator_waits_one_ttl_before_it_expires_anyone),
        cmocka_unit_test(another_coordinator_finishes_an_expiry_at_once),
        cmocka_unit_test(expiry_survives_unknown_transactions),
        cmocka_unit_test(too_many_gone_at_once_are_held_until_they_return),
        cmocka_unit_test(thirty_percent_or_fewer_than_four_are_not_held),
        cmocka_unit_test(a_hold_also_sees_servers_that_vanish_one_by_one),
        cmocka_unit_test(a_hold_ends_after_its_longest_time),
        cmocka_unit_test(a_policy_reaches_every_shard_again_and_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
