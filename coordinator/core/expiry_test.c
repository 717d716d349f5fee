#include "coordinator/core/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/core/coord_state.h"
#include "coordinator/core/delivery.h"
#include "coordinator/core/records.h"

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

/* About a record that goes and comes back shards are called again, while a call of before is on its
 * way. */
static void a_shard_that_confirms_twice_counts_once(void **state)
{
    struct world *world = ready_world(5);
    struct open_call call = { .incarnation = { 1, 1001 } };

    (void)state;
    world->deaf_node = 2;
    world_server_gone(world, 1001);
    world_run(world, 2000);
    struct server *server = server_find(world->coord, call.incarnation);
    uint32_t left = server->acks_left;
    assert_true(left > 1);
    while (server->acks[call.shard] == ACK_DONE)
        call.shard++;
    delivery_done(world->coord, &call, true);
    assert_int_equal(server->acks_left, left - 1);
    delivery_done(world->coord, &call, true);
    delivery_done(world->coord, &call, false);
    assert_int_equal(server->acks_left, left - 1);
    assert_int_equal(server->acks[call.shard], ACK_DONE);
    world_free(world);
}

static void the_lowest_live_server_rises_only_past_expired_ones(void **state)
{
    struct world *world = ready_world(5);

    (void)state;
    world_server_gone(world, 1000);
    world_run(world, 2000);
    assert_string_equal(world->lowest_live, "1-1001");
    assert_string_equal(world->expired_from, ""); /* All below. */
    world_server_gone(world, 1003);
    world_run(world, 2000);
    assert_string_equal(world->lowest_live, "1-1001");
    assert_string_equal(world->expired_from, "1-1003"); /* 1002 lives. */
    world_server_gone(world, 1002);
    world_run(world, 2000);
    assert_string_equal(world->expired_from, "1-1002"); /* 1001 does. */
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

/* ---- holds and takeovers ---- */
static void vanish(struct world *world, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        world_server_gone(world, first + i);
}

/* Killed, and another one elected `gap_ms` later. */
static void take_over(struct world *world, uint64_t gap_ms)
{
    world_replace_coordinator(world);
    world_run(world, gap_ms);
    world_elect(world);
}

static uint32_t known(struct world *world, uint64_t first, uint64_t count)
{
    uint32_t there = 0;

    for (uint64_t i = 0; i < count; i++)
        there += world_server_known(world, first + i);
    return there;
}

/* A hold, and the TTL for which each new coordinator expires no server. */
static void a_coordinator_killed_each_minute_does_not_stall_a_hold(void **state)
{
    (void)state;
    for (uint64_t first_ms = 5000; first_ms <= 60000; first_ms += 11000) {
        struct world *world = ready_world(200);
        uint64_t began_ms = world->now_ms;

        vanish(world, 1000, 152);
        world_run(world, first_ms);
        for (uint32_t i = 0; i < 3; i++) {
            take_over(world, 0);
            if (world->now_ms - began_ms < 110000)
                assert_int_equal(known(world, 1000, 152), 152);
            world_run(world, began_ms + 132000 - world->now_ms < 60000
                                 ? began_ms + 132000 - world->now_ms
                                 : 60000);
        }
        assert_int_equal(world->now_ms - began_ms, 132000);
        assert_int_equal(known(world, 1000, 152), 0);
        assert_int_equal(known(world, 1152, 48), 48);
        world_free(world);
    }
}

static void a_takeover_goes_on_with_the_hold_that_it_finds(void **state)
{
    struct world *world = ready_world(10);

    (void)state;
    vanish(world, 1000, 5);
    world_run(world, 40000);
    take_over(world, 3000);
    world_run(world, 75000); /* 118 s of 120. */
    assert_int_equal(known(world, 1000, 5), 5);
    assert_int_equal(world_stats(world).server_hold, 1);
    assert_int_equal(world_stats(world).server_holds, 0); /* It began none. */
    world_run(world, 4000);
    assert_int_equal(known(world, 1000, 5), 0);
    assert_int_equal(world_stats(world).server_hold, 0);
    world_free(world);
}

/* Without anybody to see it, nothing says that they vanished one by one. */
static void a_loss_that_no_coordinator_saw_is_held(void **state)
{
    struct world *world = ready_world(10);

    (void)state;
    world_replace_coordinator(world);
    vanish(world, 1000, 5);
    world_run(world, 300000);
    world_elect(world);
    world_run(world, 119000);
    assert_int_equal(known(world, 1000, 5), 5);
    assert_int_equal(world_stats(world).server_holds, 1);
    world_run(world, 3000);
    assert_int_equal(known(world, 1000, 5), 0);
    world_free(world);
}

static void a_hold_that_is_over_does_not_begin_again(void **state)
{
    struct world *world = ready_world(10);

    (void)state;
    world->deaf_node = 2; /* They cannot be forgotten before it answers. */
    vanish(world, 1000, 6);
    world_run(world, 110000);
    for (uint32_t i = 0; i < 3; i++) {
        take_over(world, 1000);
        world_run(world, 9000); /* Too short to expire anybody. */
        assert_int_equal(world_stats(world).server_holds, 0);
    }
    assert_int_equal(world_stats(world).server_hold, 0);
    assert_int_equal(world_server_state(world, 1000), SERVER_LIVE);
    world->deaf_node = 0;
    world_run(world, 3000);
    assert_int_equal(known(world, 1000, 6), 0);
    world_free(world);
}

static void a_server_that_vanished_before_is_not_part_of_the_hold(void **state)
{
    struct world *world = world_new();

    (void)state;
    world->limits.server_wait_ms = 30000;
    world_replace_coordinator(world);
    world_start(world);
    for (uint64_t i = 0; i < 10; i++)
        world_server_up(world, 1000 + i);
    vanish(world, 1000, 2);
    world_run(world, 15000);
    vanish(world, 1002, 5);
    world_run(world, 14000);
    assert_int_equal(world_stats(world).server_hold, 1);
    assert_int_equal(known(world, 1000, 2), 0);
    assert_int_equal(known(world, 1002, 5), 5);
    world_run(world, 108000);
    assert_int_equal(known(world, 1002, 5), 0);
    world_free(world);
}

static void a_server_that_vanishes_during_a_hold_does_not_prolong_it(void **state)
{
    struct world *world = ready_world(20);

    (void)state;
    vanish(world, 1000, 8);
    for (uint64_t i = 0; i < 5; i++) {
        world_run(world, 20000);
        world_server_gone(world, 1008 + i);
    }
    world_run(world, 15000); /* 115 s. */
    assert_int_equal(known(world, 1000, 13), 13);
    take_over(world, 0);
    world_run(world, 12000);
    assert_int_equal(known(world, 1000, 13), 0);
    assert_int_equal(known(world, 1013, 7), 7);
    world_free(world);
}

static void a_second_loss_during_a_hold_is_held_for_as_long(void **state)
{
    struct world *world = ready_world(20);

    (void)state;
    vanish(world, 1000, 8);
    world_run(world, 60000);
    vanish(world, 1008, 6);
    world_run(world, 30000);
    take_over(world, 0);
    world_run(world, 32000); /* 122 s after the first, 62 s after the second. */
    assert_int_equal(known(world, 1000, 8), 0);
    assert_int_equal(known(world, 1008, 6), 6);
    world_run(world, 60000);
    assert_int_equal(known(world, 1008, 6), 0);
    world_free(world);
}

/* Its mark went when it came back: it is held again like any other. */
static void a_server_that_came_back_is_held_again(void **state)
{
    struct world *world = ready_world(10);

    (void)state;
    vanish(world, 1000, 5);
    world_run(world, 30000);
    for (uint64_t i = 0; i < 5; i++)
        world_server_up(world, 1000 + i);
    world_run(world, 300000);
    assert_int_equal(world_stats(world).server_hold, 0);
    vanish(world, 1000, 5);
    world_run(world, 100000);
    take_over(world, 0);
    world_run(world, 18000);
    assert_int_equal(known(world, 1000, 5), 5);
    world_run(world, 5000);
    assert_int_equal(known(world, 1000, 5), 0);
    world_free(world);
}

/* A range tells once more what was live before the hold began, and then that it is gone. */
static void a_live_record_of_before_does_not_begin_a_hold_again(void **state)
{
    static const char value[] =
        "{\"name\":\"server\",\"ttl_ms\":6000,\"state\":\"live\",\"lease_id\":\"77\"}";
    struct world *world = ready_world(10);

    (void)state;
    vanish(world, 1000, 5);
    world_run(world, 30000);
    assert_int_equal(world_stats(world).server_hold, 1);
    for (uint64_t i = 0; i < 5; i++) {
        struct cluster_key key =
            cluster_key_server_live("test", (struct incarnation){ 1, 1000 + i });
        world_step(world, (struct coord_event){ .type = COORD_PUT,
                                                .key = cluster_key_slice(&key),
                                                .value = slice_from_text(value),
                                                .mod_revision = 1 });
        world_step(world, (struct coord_event){ .type = COORD_DELETED,
                                                .key = cluster_key_slice(&key),
                                                .mod_revision = world->revision });
    }
    world_run(world, 85000);
    assert_int_equal(known(world, 1000, 5), 5);
    world_run(world, 10000);
    assert_int_equal(known(world, 1000, 5), 0);
    assert_int_equal(world_stats(world).server_holds, 1);
    world_free(world);
}

/* A takeover by a clock that is ahead ends a hold early, but not before one TTL; by one that is
 * behind, or after one that was ahead, it never lasts longer than one more. */
static void clocks_that_differ_bound_a_hold_both_ways(void **state)
{
    struct world *world = ready_world(10);

    (void)state;
    vanish(world, 1000, 5);
    world_run(world, 20000);
    world->clock_ms = 3600000;
    take_over(world, 0);
    world_run(world, 9900);
    assert_int_equal(known(world, 1000, 5), 5);
    world_run(world, 2000);
    assert_int_equal(known(world, 1000, 5), 0);
    world_free(world);

    world = world_new();
    world->clock_ms = 3600000;
    world_start(world);
    world_run(world, 12000);
    for (uint64_t i = 0; i < 10; i++)
        world_server_up(world, 1000 + i);
    vanish(world, 1000, 5);
    world_run(world, 20000);
    world->clock_ms = 0;
    for (uint32_t i = 0; i < 5; i++) {
        take_over(world, 0); /* It began in an hour, says etcd: now, says the first of them. */
        world_run(world, 30000);
        assert_int_equal(known(world, 1000, 5), i < 4 ? 5 : 0);
    }
    world_free(world);
}

static void a_mark_that_cannot_be_read_is_written_again(void **state)
{
    struct world *world = ready_world(10);

    (void)state;
    vanish(world, 1000, 5);
    world_run(world, 60000);
    for (uint64_t i = 0; i < 5; i++)
        world_server_hold_text(world, 1000 + i, i % 2 == 0 ? "soon" : "-1");
    take_over(world, 0);
    world_run(world, 119000);
    assert_int_equal(world_stats(world).records_malformed, 0);
    assert_int_equal(known(world, 1000, 5), 5);
    world_run(world, 3000);
    assert_int_equal(known(world, 1000, 5), 0);
    world_free(world);
}

/* It dies before all marks are written. */
static void a_hold_that_was_half_written_is_completed(void **state)
{
    struct world *world = ready_world(10);

    (void)state;
    vanish(world, 1000, 5);
    world_run(world, 20);
    for (uint64_t i = 0; i < 3; i++)
        world_server_hold_text(world, 1000 + i, NULL);
    take_over(world, 15000);
    world_run(world, 103000);
    assert_int_equal(known(world, 1000, 5), 5);
    world_run(world, 4000);
    assert_int_equal(known(world, 1000, 5), 0);
    world_free(world);
}

static void two_that_are_being_marked_are_not_counted_twice(void **state)
{
    struct world *world = ready_world(6);

    (void)state;
    world->fault = WORLD_SILENT;
    vanish(world, 1000, 2);
    world_run(world, 3000);
    assert_int_equal(world_stats(world).server_hold, 0);
    world->fault = WORLD_WELL;
    world_run(world, 1000);
    assert_int_equal(known(world, 1000, 2), 0);
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
        cmocka_unit_test(a_shard_that_confirms_twice_counts_once),
        cmocka_unit_test(the_lowest_live_server_rises_only_past_expired_ones),
        cmocka_unit_test(a_server_that_is_reattached_in_time_is_kept),
        cmocka_unit_test(a_new_coordinator_waits_one_ttl_before_it_expires_anyone),
        cmocka_unit_test(another_coordinator_finishes_an_expiry_at_once),
        cmocka_unit_test(expiry_survives_unknown_transactions),
        cmocka_unit_test(too_many_gone_at_once_are_held_until_they_return),
        cmocka_unit_test(thirty_percent_or_fewer_than_four_are_not_held),
        cmocka_unit_test(a_hold_also_sees_servers_that_vanish_one_by_one),
        cmocka_unit_test(a_hold_ends_after_its_longest_time),
        cmocka_unit_test(a_coordinator_killed_each_minute_does_not_stall_a_hold),
        cmocka_unit_test(a_takeover_goes_on_with_the_hold_that_it_finds),
        cmocka_unit_test(a_loss_that_no_coordinator_saw_is_held),
        cmocka_unit_test(a_hold_that_is_over_does_not_begin_again),
        cmocka_unit_test(a_server_that_vanished_before_is_not_part_of_the_hold),
        cmocka_unit_test(a_server_that_vanishes_during_a_hold_does_not_prolong_it),
        cmocka_unit_test(a_second_loss_during_a_hold_is_held_for_as_long),
        cmocka_unit_test(a_server_that_came_back_is_held_again),
        cmocka_unit_test(a_live_record_of_before_does_not_begin_a_hold_again),
        cmocka_unit_test(clocks_that_differ_bound_a_hold_both_ways),
        cmocka_unit_test(a_mark_that_cannot_be_read_is_written_again),
        cmocka_unit_test(a_hold_that_was_half_written_is_completed),
        cmocka_unit_test(two_that_are_being_marked_are_not_counted_twice),
        cmocka_unit_test(a_policy_reaches_every_shard_again_and_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
