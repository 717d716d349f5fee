#include "coordinator/core/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SHARDS 8u

static uint64_t load_of(struct world *world, uint64_t replica_id)
{
    uint64_t load = 0;

    for (uint32_t i = 0; i < SHARDS; i++)
        load += world_shard(world, i).owner == replica_id ? world->rates[i] : 0;
    return load;
}

static uint64_t most(struct world *world)
{
    uint64_t loads[] = { load_of(world, 1), load_of(world, 2), load_of(world, 3) };
    uint64_t found = loads[0];

    for (int i = 1; i < 3; i++)
        found = loads[i] > found ? loads[i] : found;
    return found;
}

/* All that node 1 owns has `busy` operations a second, and everything else `idle`. */
static struct world *world_where_one_is_busy(uint64_t busy, uint64_t idle)
{
    struct world *world = world_new();

    world_start(world);
    for (uint32_t i = 0; i < SHARDS; i++)
        world->rates[i] = world_shard(world, i).owner == 1 ? busy : idle;
    return world;
}

static bool is_even(struct world *world)
{
    for (uint64_t id = 1; id <= 3; id++) {
        if (world_owned(world, id) < 2 || world_owned(world, id) > 3)
            return false;
    }
    return true;
}

static void busy_shards_are_exchanged_for_idle_ones_until_owners_have_as_much_to_do(void **state)
{
    struct world *world = world_where_one_is_busy(10000, 100);
    uint64_t before = most(world);

    (void)state;
    world_run(world, 6000);
    assert_int_equal(world_stats(world).exchanges, 0); /* No coordinator is hasty. */
    world_run(world, 60000);
    assert_in_range(world_stats(world).exchanges, 1, 3);
    assert_in_range(most(world), 10000, before / 2 + 200);
    assert_true(is_even(world));
    uint64_t txns = world->txns;

    world_run(world, 120000);
    assert_int_equal(world->txns, txns);
    world_free(world);
}

static void what_differs_little_stays_where_it_is(void **state)
{
    struct world *world = world_where_one_is_busy(900, 300);
    uint64_t txns;

    (void)state;
    world_run(world, 3000);
    txns = world->txns;
    world_run(world, 120000);
    assert_int_equal(world->txns, txns);
    assert_int_equal(world_stats(world).exchanges, 0);
    world_free(world);
}

static void one_shard_that_is_busier_than_all_others_is_not_sent_round(void **state)
{
    struct world *world = world_where_one_is_busy(0, 0);

    (void)state;
    world->rates[5] = 50000;
    world_run(world, 120000);
    assert_int_equal(world_stats(world).exchanges, 0);
    world_free(world);
}

static void a_busy_shard_ends_with_few_others_beside_it(void **state)
{
    struct world *world = world_where_one_is_busy(4000, 3000);
    uint32_t hot = 0;

    (void)state;
    while (world_shard(world, hot).owner != 1)
        hot++;
    world->rates[hot] = 30000;
    world_run(world, 120000);
    assert_in_range(most(world), 33000, 34000);
    assert_in_range(world_stats(world).exchanges, 1, 2);
    assert_true(is_even(world));
    world_free(world);
}

static void nothing_goes_to_a_node_that_is_drained(void **state)
{
    struct world *world = world_where_one_is_busy(10000, 0);

    (void)state;
    world_wish_node(world, 2, NODE_DRAIN);
    world_run(world, 60000);
    assert_int_equal(world_owned(world, 2), 0);
    world_free(world);
}

static void owners_of(struct world *world, uint64_t ret_owners[SHARDS])
{
    for (uint32_t i = 0; i < SHARDS; i++)
        ret_owners[i] = world_shard(world, i).owner;
}

/* The busiest node is to own nothing more: one of its replicas cannot be read. */
static void nothing_comes_back_to_a_busy_node_with_damage(void **state)
{
    struct world *world = world_where_one_is_busy(10000, 100);
    uint64_t before[SHARDS], after[SHARDS];
    uint32_t damaged = 0;

    (void)state;
    world->limits.repair_wait_ms = 600000;
    world_replace_coordinator(world);
    world_elect(world);
    owners_of(world, before);
    while (before[damaged] == 1)
        damaged++;
    world_node_damaged(world, 1, 1, damaged);
    for (uint32_t i = 0; i < 60; i++) {
        world_run(world, 1000);
        owners_of(world, after);
        for (uint32_t k = 0; k < SHARDS; k++)
            assert_true(before[k] == 1 || after[k] != 1);
    }
    world_free(world);
}

static void every_shard_is_asked_though_calls_are_few(void **state)
{
    struct world *world = world_where_one_is_busy(10000, 100);

    (void)state;
    world->limits.calls_max = 4;
    world_replace_coordinator(world);
    world_elect(world);
    world_run(world, 60000);
    assert_in_range(world_stats(world).exchanges, 1, 3);
    world_free(world);
}

/* One record at a time: the number is evened out by another write. */
static void an_exchange_of_which_half_is_written_is_evened_out(void **state)
{
    struct world *world = world_where_one_is_busy(10000, 100);

    (void)state;
    world->limits.txns_max = world->limits.txn_writes_max = 1;
    world_replace_coordinator(world);
    world_elect(world);
    world_run(world, 90000);
    assert_true(world_stats(world).exchanges > 0);
    assert_true(is_even(world));
    world_free(world);
}

static void no_exchange_is_told_that_was_not_written(void **state)
{
    struct world *world = world_where_one_is_busy(10000, 100);

    (void)state;
    world->limits.txns_max = 1;
    world->limits.server_wait_ms = 0;
    world_replace_coordinator(world);
    world_elect(world);
    world_server_up(world, 1000);
    world_run(world, 1000);
    world->fault = WORLD_SILENT;
    world_server_gone(world, 1000); /* To be marked: the one transaction has no answer. */
    world_run(world, 60000);
    assert_int_equal(world_stats(world).transactions_open, 1);
    assert_int_equal(world_stats(world).exchanges, 0);
    world->fault = WORLD_WELL;
    world_run(world, 60000);
    assert_true(world_stats(world).exchanges > 0);
    world_free(world);
}

static void it_can_be_switched_off(void **state)
{
    struct world *world = world_where_one_is_busy(10000, 100);

    (void)state;
    world->limits.load_exchange_ms = 0;
    world_replace_coordinator(world);
    world_elect(world);
    uint64_t states = world->states;

    world_run(world, 60000);
    assert_int_equal(world_stats(world).exchanges, 0);
    assert_int_equal(world->states, states);
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(busy_shards_are_exchanged_for_idle_ones_until_owners_have_as_much_to_do),
        cmocka_unit_test(what_differs_little_stays_where_it_is),
        cmocka_unit_test(one_shard_that_is_busier_than_all_others_is_not_sent_round),
        cmocka_unit_test(a_busy_shard_ends_with_few_others_beside_it),
        cmocka_unit_test(nothing_goes_to_a_node_that_is_drained),
        cmocka_unit_test(nothing_comes_back_to_a_busy_node_with_damage),
        cmocka_unit_test(every_shard_is_asked_though_calls_are_few),
        cmocka_unit_test(an_exchange_of_which_half_is_written_is_evened_out),
        cmocka_unit_test(no_exchange_is_told_that_was_not_written),
        cmocka_unit_test(it_can_be_switched_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
