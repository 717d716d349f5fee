#include "coordinator/core/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define SHARDS 8u

/* A shard that `owner` owns. */
static uint32_t shard_of(struct world *world, uint64_t owner)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        if (world_shard(world, i).owner == owner)
            return i;
    }
    fail_msg("node %u owns nothing", (unsigned)owner);
    return 0;
}

static uint64_t others(uint64_t owner, int which)
{
    uint64_t first = owner == 1 ? 2 : 1;
    uint64_t second = owner == 3 ? 2 : 3;

    return which == 0 ? first : second;
}

static void say_full_once(struct world *world, uint64_t replica)
{
    Holdfast__Internal__V1__ReportOwnerRequest report =
        HOLDFAST__INTERNAL__V1__REPORT_OWNER_REQUEST__INIT;
    char reason[] = "full";

    report.reporter = replica;
    report.owner = replica;
    report.reason = reason;
    world_step(world, (struct coord_event){ .type = COORD_REPORT, .report = &report });
}

/* What a node says as long as its disk is short. */
static void say_full(struct world *world, uint64_t replica, uint32_t seconds)
{
    for (uint32_t i = 0; i < seconds; i++) {
        say_full_once(world, replica);
        world_run(world, 1000);
    }
}

static void shards_leave_a_node_whose_disk_is_full_and_come_back_when_there_is_room(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    assert_in_range(world_owned(world, 1), 2, 3);
    say_full(world, 1, 6);
    assert_int_equal(world_owned(world, 1), 0);
    assert_int_equal(world_owned(world, 2) + world_owned(world, 3), SHARDS);
    assert_int_equal(world_stats(world).nodes_full, 1);
    assert_in_range(world_stats(world).evacuations, 2, 3);
    say_full(world, 1, 30); /* Nor does spreading give it any. */
    assert_int_equal(world_owned(world, 1), 0);
    world_run(world, 30000);
    assert_int_equal(world_stats(world).nodes_full, 0);
    assert_in_range(world_owned(world, 1), 2, 3);
    world_free(world);
}

/* The full one owns least, since it was relieved; a drain does not wait for it. */
static void a_drain_goes_past_a_member_whose_disk_is_full(void **state)
{
    struct world *world = world_new();

    (void)state;
    world->limits.rebalance = 0;
    world_replace_coordinator(world);
    world_start(world);
    say_full(world, 2, 6);
    assert_int_equal(world_owned(world, 2), 0);
    world_wish_node(world, 1, NODE_DRAIN);
    say_full(world, 2, 3);
    assert_int_equal(world_owned(world, 1), 0);
    assert_int_equal(world_owned(world, 3), SHARDS);
    world_free(world);
}

/* Its owner is to go; of the others node 2 owns least, since it was relieved. */
static void a_change_of_members_names_no_owner_whose_disk_is_full(void **state)
{
    struct world *world = world_new();
    struct shard_record record;
    uint32_t shard = 0;

    (void)state;
    world_node_up(world, 4, 1);
    world_start(world);
    say_full(world, 2, 6);
    for (uint64_t id = 1; id <= 4; id++)
        assert_int_equal(world_owned(world, id) == 0, id == 2);
    record = world_shard(world, shard);
    while (!shard_record_has_member(&record, 2))
        record = world_shard(world, ++shard);
    struct shard_wish wish = { .member_count = record.member_count };

    for (uint32_t i = 0; i < record.member_count; i++)
        wish.members[i] = record.members[i] != record.owner
                              ? record.members[i]
                              : 10 - record.members[0] - record.members[1] - record.members[2];
    world_wish_shard(world, shard, &wish);
    for (uint32_t i = 0; i < 40; i++) {
        if (i % 10 == 0)
            say_full_once(world, 2);
        world_run(world, 100);
        assert_int_not_equal(world_shard(world, shard).owner, 2);
    }
    assert_int_equal(world_stats(world).changes_done, 1);
    world_free(world);
}

static void shards_stay_where_they_are_while_every_disk_is_full(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    for (uint32_t i = 0; i < 20; i++) {
        say_full_once(world, 2);
        say_full_once(world, 1);
        say_full(world, 3, 1);
    }
    assert_int_equal(world_stats(world).nodes_full, 3);
    assert_int_equal(world_stats(world).evacuations, 0);
    world_free(world);
}

static void a_dead_owners_shards_go_to_a_node_with_room(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    say_full(world, 2, 6);
    world_node_down(world, 1);
    say_full(world, 2, 2);
    assert_int_equal(world_owned(world, 3), SHARDS);
    world_free(world);
}

static void cluster_is_created_once_and_shards_wait_for_enough_nodes(void **state)
{
    struct world *world = world_new();

    (void)state;
    assert_null(coord_cluster(world->coord));
    world_run(world, 100);
    assert_non_null(coord_cluster(world->coord));
    assert_true(world_has(world, cluster_key_policy("test")));
    assert_int_equal(world->txns, 1);
    world_elect(world);
    world_node_up(world, 1, 1);
    world_node_up(world, 2, 1);
    world_run(world, 5000);
    assert_false(world_has(world, cluster_key_shard("test", 0)));
    world_node_up(world, 3, 1);
    world_run(world, 300);
    assert_false(world_has(world, cluster_key_shard("test", 0)));
    world_run(world, 300);
    for (uint32_t i = 0; i < SHARDS; i++) {
        struct shard_record record = world_shard(world, i);

        assert_int_equal(record.epoch, 1);
        assert_int_equal(record.config, 1);
        assert_int_equal(record.phase, SHARD_STABLE);
        assert_int_equal(record.member_count, 3);
        assert_true(shard_record_has_member(&record, record.owner));
    }
    for (uint64_t id = 1; id <= 3; id++)
        assert_in_range(world_owned(world, id), 2, 3);
    world_free(world);
}

static void a_dead_nodes_shards_go_at_once_in_one_transaction_and_evenly(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    uint64_t txns = world->txns;
    uint32_t had = world_owned(world, 1);

    world_node_down(world, 1);
    assert_int_equal(world->txns, txns + 1);
    assert_int_equal(world_owned(world, 1), 0);
    assert_int_equal(world_owned(world, 2), 4);
    assert_int_equal(world_owned(world, 3), 4);
    assert_int_equal(world_stats(world).failovers, had);
    for (uint32_t i = 0; i < SHARDS; i++)
        assert_in_range(world_shard(world, i).epoch, 1, 2);
    world_free(world);
}

static void nothing_is_written_for_a_shard_without_live_members(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    for (uint64_t id = 1; id <= 3; id++)
        world_node_down(world, id);
    uint64_t txns = world->txns;

    world_run(world, 3000);
    assert_int_equal(world->txns, txns);
    assert_int_equal(world_stats(world).shards_unowned, 8);
    world_node_up(world, 2, 2);
    world_run(world, 100);
    assert_int_equal(world_owned(world, 2), 8);
    world_free(world);
}

static void a_restarted_owner_is_named_again_one_epoch_higher(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    uint32_t shard = shard_of(world, 2);
    uint32_t had = world_owned(world, 2);

    world_node_up(world, 2, 2); /* Before its lease ran out: the record was never absent. */
    world_run(world, 100);
    assert_int_equal(world_shard(world, shard).owner, 2);
    assert_int_equal(world_shard(world, shard).epoch, 2);
    assert_int_equal(world_stats(world).restarts, had);
    world_run(world, 5000);
    assert_int_equal(world_shard(world, shard).epoch, 2);
    world_free(world);
}

static void a_restart_under_no_coordinator_is_seen_by_the_next_one(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    uint32_t shard = shard_of(world, 2);
    uint32_t untouched = shard_of(world, 3);

    world->mirror_stopped = true;
    world_node_up(world, 2, 2);
    world->mirror_stopped = false;
    world_replace_coordinator(world);
    world_elect(world);
    world_run(world, 100);
    assert_int_equal(world_shard(world, shard).owner, 2);
    assert_int_equal(world_shard(world, shard).epoch, 2);
    assert_int_equal(world_shard(world, untouched).epoch, 1);
    world_free(world);
}

static void early_claim_needs_a_majority_without_the_owner(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    uint32_t shard = shard_of(world, 1);

    world_run(world, 6000);
    world_report(world, 2, shard, "closed", 10);
    world_report(world, 2, shard, "closed", 10); /* Twice the same is one. */
    world_report(world, 1, shard, "closed", 90); /* The owner has no say. */
    world_run(world, 100);
    assert_int_equal(world_shard(world, shard).epoch, 1);
    world_report(world, 3, shard, "silent", 11);
    assert_int_equal(world_shard(world, shard).epoch, 2);
    assert_int_equal(world_shard(world, shard).owner, 3); /* The greater dot. */
    world_free(world);
}

/* etcd went back, unnoticed, and gave the next epoch again, to the node that had it before. */
static void an_owner_that_declines_its_epoch_is_named_under_the_next(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    uint32_t shard = shard_of(world, 1);

    world_run(world, 6000);
    world_report(world, 2, shard, "declined", 10); /* Only the owner can say that. */
    world_run(world, 100);
    assert_int_equal(world_shard(world, shard).epoch, 1);
    world_report(world, 1, shard, "declined", 10);
    world_run(world, 100);
    assert_int_equal(world_shard(world, shard).epoch, 2);
    assert_int_equal(world_shard(world, shard).owner, 1);
    assert_int_equal(world_stats(world).declined, 1);
    world_run(world, 10000); /* Said once, of one epoch. */
    assert_int_equal(world_shard(world, shard).epoch, 2);
    world_free(world);
}

/* Every member runs the new program by now: the next START may say so. */
static void an_owner_that_has_outgrown_its_version_is_named_under_the_next(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    uint32_t shard = shard_of(world, 1);

    world_run(world, 6000);
    world_report(world, 2, shard, "outgrown", 10); /* Only the owner can say that. */
    world_run(world, 100);
    assert_int_equal(world_shard(world, shard).epoch, 1);
    world_report(world, 1, shard, "outgrown", 10);
    world_run(world, 100);
    assert_int_equal(world_shard(world, shard).epoch, 2);
    assert_int_equal(world_shard(world, shard).owner, 1);
    assert_int_equal(world_stats(world).outgrown, 1);
    world_run(world, 10000); /* Said once, of one epoch. */
    assert_int_equal(world_shard(world, shard).epoch, 2);
    world_free(world);
}

static void an_owner_whose_clock_is_ahead_gives_the_shard_up(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    uint32_t shard = shard_of(world, 1);
    world_run(world, 6000);
    world_report(world, 1, shard, "clock", 10);
    world_run(world, 100);
    uint64_t owner = world_shard(world, shard).owner;
    assert_int_not_equal(owner, 1);
    assert_int_equal(world_stats(world).clocks_ahead, 1);
    world_report(world, owner, shard, "clock", 10); /* Not calm yet, and right again by then. */
    world_run(world, 10000);                        /* Nor is it given back at once. */
    assert_int_equal(world_shard(world, shard).epoch, 2);
    world_free(world);
}

static void reports_that_are_old_or_too_early_do_not_count(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    uint32_t shard = shard_of(world, 1);

    world_run(world, 6000);
    world_report(world, 2, shard, "closed", 10);
    world_run(world, 3100);
    world_report(world, 3, shard, "closed", 11);
    world_run(world, 100);
    assert_int_equal(world_shard(world, shard).epoch, 1);
    world->since_ms = 299;
    world_report(world, 2, shard, "closed", 10);
    world->since_ms = 1499;
    world_report(world, 2, shard, "silent", 10);
    assert_int_equal(world_shard(world, shard).epoch, 1);
    world->since_ms = 1500;
    world_report(world, 2, shard, "silent", 10);
    assert_int_equal(world_shard(world, shard).epoch, 2);
    world_free(world);
}

static void a_claimed_shard_is_left_in_peace_for_the_calm(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    world_run(world, 6000);
    uint32_t shard = shard_of(world, 1);

    world_report(world, 2, shard, "closed", 10);
    world_report(world, 3, shard, "closed", 9);
    assert_int_equal(world_shard(world, shard).owner, 2);
    for (int i = 0; i < 12; i++) { /* 4.8 s */
        world_report(world, 1, shard, "closed", 10);
        world_report(world, 3, shard, "closed", 10);
        world_run(world, 400);
    }
    assert_int_equal(world_shard(world, shard).epoch, 2);
    world_report(world, 1, shard, "closed", 10);
    world_report(world, 3, shard, "closed", 10);
    world_run(world, 400);
    assert_int_equal(world_shard(world, shard).epoch, 3);
    world_free(world);
}

static void reports_choose_the_heir_of_a_dead_owner_too(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    uint32_t shard = shard_of(world, 2);

    world_report(world, 3, shard, "closed", 5);
    world_node_down(world, 2);
    assert_int_equal(world_shard(world, shard).owner, 3);
    world_free(world);
}

static void a_transaction_without_an_answer_is_repeated_until_definite(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    uint32_t shard = shard_of(world, 1);

    world->fault = WORLD_SILENT;
    world_node_down(world, 1);
    world_run(world, 2000);
    assert_int_equal(world_shard(world, shard).epoch, 1);
    assert_true(world_stats(world).transactions_unknown >= 5);
    assert_int_equal(world_stats(world).transactions_open, 1);
    world->fault = WORLD_WELL;
    world_run(world, 300);
    assert_int_equal(world_shard(world, shard).epoch, 2);
    assert_int_equal(world_stats(world).transactions_open, 0);
    world_free(world);
}

/* It had committed: the repeat fails its compare, and the record tells that this was us. */
static void an_unknown_transaction_that_committed_is_not_done_twice(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    uint32_t shard = shard_of(world, 1);

    world->fault = WORLD_ANSWER_LOST;
    world->txns_unseen = true;
    world_node_down(world, 1);
    assert_int_equal(world_shard(world, shard).epoch, 2);
    world->fault = WORLD_WELL;
    world_run(world, 300);
    assert_int_equal(world_stats(world).transactions_open, 0);
    assert_true(world_stats(world).writes_lost > 0);
    uint64_t txns = world->txns;

    world_run(world, 3000); /* Until the record comes, nothing is known and nothing written. */
    assert_int_equal(world->txns, txns);
    world_refresh(world);
    world_run(world, 3000);
    assert_int_equal(world->txns, txns);
    assert_int_equal(world_shard(world, shard).epoch, 2);
    assert_int_equal(coord_find_shard(world->coord, shard)->epoch, 2);
    world_free(world);
}

static void a_deposed_coordinator_writes_nothing(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    uint32_t shard = shard_of(world, 1);
    uint64_t txns = world->txns;

    world_depose(world); /* It has not heard of it yet. */
    assert_true(coord_is_active(world->coord));
    world_node_down(world, 1);
    assert_int_equal(world->txns, txns + 1);
    assert_int_equal(world_shard(world, shard).epoch, 1);
    assert_false(coord_is_active(world->coord));
    world_run(world, 3000);
    assert_int_equal(world->txns, txns + 1);
    world_elect(world);
    assert_int_equal(world_shard(world, shard).epoch, 2);
    world_free(world);
}

static void ownership_returns_to_a_node_that_came_back_one_shard_at_a_time(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    world_node_down(world, 1);
    world_run(world, 1000);
    world_node_up(world, 1, 2);
    world_run(world, 9900);
    assert_int_equal(world_owned(world, 1), 0);
    world_run(world, 200);
    assert_int_equal(world_owned(world, 1), 1);
    world_run(world, 2000);
    assert_in_range(world_owned(world, 1), 2, 3);
    uint64_t handovers = world_stats(world).handovers;

    world_run(world, 60000);
    assert_int_equal(world_stats(world).handovers, handovers);
    world_free(world);
}

static void spreading_can_be_switched_off_and_shuns_claimed_nodes(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    world_run(world, 6000);
    while (world_owned(world, 1) > 0) {
        uint32_t shard = shard_of(world, 1);

        world_report(world, others(1, 0), shard, "silent", 10);
        world_report(world, others(1, 1), shard, "silent", 10);
        assert_true(world_shard(world, shard).owner != 1);
    }
    world_run(world, 55000);
    assert_int_equal(world_owned(world, 1), 0);
    world_run(world, 20000);
    assert_in_range(world_owned(world, 1), 2, 3);
    world_free(world);

    world = world_new();
    coord_free(world->coord);
    world->limits.rebalance = 0;
    world->coord = NULL;
    world_replace_coordinator(world);
    world_start(world);
    world_node_down(world, 1);
    world_node_up(world, 1, 2);
    world_run(world, 60000);
    assert_int_equal(world_owned(world, 1), 0);
    world_free(world);
}

static void a_deleted_ownership_record_is_not_made_anew(void **state)
{
    struct world *world = world_new();
    struct cluster_key key = cluster_key_shard("test", 3);

    (void)state;
    world_start(world);
    world_step(world, (struct coord_event){ .type = COORD_DELETED,
                                            .key = cluster_key_slice(&key),
                                            .mod_revision = world->revision });
    uint64_t txns = world->txns;

    world_run(world, 5000);
    assert_int_equal(world->txns, txns);
    assert_int_equal(world_stats(world).records_malformed, 1);
    world_free(world);
}

static void epochs_rise_above_those_of_a_backup_once(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    uint64_t owner = world_shard(world, 0).owner;
    world_raise_epochs(world, 500);
    world_run(world, 2000);
    for (uint32_t i = 0; i < SHARDS; i++) {
        assert_int_equal(world_shard(world, i).epoch, 501);
        assert_int_equal(world_shard(world, i).generation, 2);
    }
    assert_int_equal(world_shard(world, 0).owner, owner);
    uint64_t txns = world->txns;
    world_run(world, 2000);
    assert_int_equal(world->txns, txns);
    world_free(world);
}

static void a_halted_coordinator_never_acts_again(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    world_step(world, (struct coord_event){ .type = COORD_HALT });
    assert_false(coord_is_active(world->coord));
    uint64_t txns = world->txns;

    world_elect(world);
    world_node_down(world, 1);
    world_run(world, 5000);
    assert_int_equal(world->txns, txns);
    world_free(world);
}

static void nothing_is_written_while_a_replica_knows_a_later_record(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    world->epochs_known[2][3] = world_shard(world, 3).epoch + 5;
    world->configs_known[3][4] = world_shard(world, 4).config + 1;
    uint64_t epochs[] = { world_shard(world, 3).epoch, world_shard(world, 4).epoch };

    world_replace_coordinator(world);
    world_elect(world);
    world_node_down(world, 1);
    world_run(world, 3000);
    for (uint32_t i = 0; i < SHARDS; i++)
        assert_true(world_shard(world, i).owner != 1 || i == 3 || i == 4);
    assert_int_equal(world_shard(world, 3).epoch, epochs[0]);
    assert_int_equal(world_shard(world, 4).epoch, epochs[1]);
    struct coord_stats stats = world_stats(world);

    assert_int_equal(stats.shards_doubted, 2);
    world_free(world);
}

/* etcd went back by a record or two, and its revisions rose again before this was noticed. */
static void a_shard_whose_newer_record_never_comes_is_doubted(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    uint32_t shard = shard_of(world, 1);

    world_age_shard(world, shard);
    world_node_down(world, 1);
    world_run(world, world->limits.stale_doubt_ms - 1000);
    assert_int_equal(world_owned(world, 1), 1);
    assert_int_equal(world_stats(world).shards_doubted, 0);
    world_run(world, 2000);
    assert_int_equal(world_shard(world, shard).epoch, 1);
    assert_int_equal(world_stats(world).shards_doubted, 1);
    world_free(world);
}

/* etcd is as of before the first record of any shard; who held them has to be asked. */
static void no_shard_is_placed_that_somebody_holds(void **state)
{
    struct world *world = world_new();

    (void)state;
    world->holder = 2;
    for (uint64_t id = 1; id <= 3; id++)
        world_node_up(world, id, 1);
    world_elect(world);
    world_run(world, 3000);
    assert_int_equal(world_stats(world).shards_doubted, SHARDS);
    assert_int_equal(world_stats(world).shards_placed_now, 0);
    world_free(world);
}

/* Replicas fence an owner whom a later record does not name, so the coordinator need ask no one. */
static void a_failover_waits_for_nobodys_word(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    world_node_down(world, 1);
    world_node_down(world, 2);
    world->deaf_node = 3;
    world_replace_coordinator(world);
    world_elect(world);
    world_run(world, 3000);
    assert_int_equal(world_owned(world, 3), SHARDS);
    assert_int_equal(world_stats(world).shards_unheard, SHARDS);
    world_free(world);
}

static void a_doubting_node_halts_a_coordinator_without_memory(void **state)
{
    struct world *world = world_new();
    struct node_record record = { .replica_id = 9,
                                  .name = "n",
                                  .address = "a:1",
                                  .peer_address = "a:2",
                                  .version = "v",
                                  .doubts = 1 };
    struct cluster_key key = cluster_key_node("test", 9);
    struct buf value = { 0 };

    (void)state;
    world_start(world);
    node_record_encode(&record, &value);
    world->revision++;
    world_step(world, (struct coord_event){ .type = COORD_PUT,
                                            .key = cluster_key_slice(&key),
                                            .value = buf_slice(&value),
                                            .create_revision = world->revision,
                                            .mod_revision = world->revision });
    world_run(world, 100);
    uint64_t txns = world->txns;

    assert_true(coord_is_halted(world->coord));
    world_node_down(world, 1);
    world_run(world, 3000);
    assert_int_equal(world->txns, txns);
    world_raise_epochs(world, 500); /* With the generation. */
    world_run(world, 3000);
    assert_false(coord_is_halted(world->coord));
    assert_int_equal(world_owned(world, 1), 0);
    buf_deinit(&value);
    world_free(world);
}

/* The record of node `replica` says that its replica of the shard differs from a majority. */
static void an_owner_that_is_quarantined_is_replaced_and_not_named_again(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    uint32_t shard = shard_of(world, 1);

    world_run(world, 10000);
    world_node_quarantined(world, 1, 1, shard);
    world_run(world, 500);
    uint64_t owner = world_shard(world, shard).owner;
    assert_int_not_equal(owner, 1);
    assert_int_equal(world_stats(world).replicas_quarantined, 1);
    /* It owns fewer than the others, and its owner goes: still not that one. */
    world_run(world, 60000);
    owner = world_shard(world, shard).owner;
    assert_int_not_equal(owner, 1);
    world_node_down(world, owner);
    world_run(world, 20000);
    assert_int_equal(world_shard(world, shard).owner, 6 - 1 - owner);
    assert_int_equal(world_stats(world).shards_unownable, 0);
    world_free(world);
}

/* A restart of the node neither names it again nor hides that the shard has no owner. */
static void a_shard_without_another_member_stays_without_an_owner(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    uint32_t shard = shard_of(world, 1);

    world_run(world, 10000);
    world_node_down(world, 2);
    world_node_down(world, 3);
    world_node_quarantined(world, 1, 1, shard);
    world_run(world, 10000);
    struct shard_record before = world_shard(world, shard);
    world_node_quarantined(world, 1, 2, shard);
    world_run(world, 10000);
    assert_true(world_shard(world, shard).epoch == before.epoch);
    assert_int_equal(world_stats(world).shards_unownable, 1);
    assert_int_equal(world_stats(world).shards_unowned, 1);
    world_node_up(world, 3, 2);
    world_run(world, 10000);
    assert_int_equal(world_shard(world, shard).owner, 3);
    assert_int_equal(world_stats(world).shards_unowned, 0);
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_that_is_quarantined_is_replaced_and_not_named_again),
        cmocka_unit_test(a_shard_without_another_member_stays_without_an_owner),
        cmocka_unit_test(shards_leave_a_node_whose_disk_is_full_and_come_back_when_there_is_room),
        cmocka_unit_test(a_drain_goes_past_a_member_whose_disk_is_full),
        cmocka_unit_test(a_change_of_members_names_no_owner_whose_disk_is_full),
        cmocka_unit_test(shards_stay_where_they_are_while_every_disk_is_full),
        cmocka_unit_test(a_dead_owners_shards_go_to_a_node_with_room),
        cmocka_unit_test(cluster_is_created_once_and_shards_wait_for_enough_nodes),
        cmocka_unit_test(a_dead_nodes_shards_go_at_once_in_one_transaction_and_evenly),
        cmocka_unit_test(nothing_is_written_for_a_shard_without_live_members),
        cmocka_unit_test(a_restarted_owner_is_named_again_one_epoch_higher),
        cmocka_unit_test(a_restart_under_no_coordinator_is_seen_by_the_next_one),
        cmocka_unit_test(early_claim_needs_a_majority_without_the_owner),
        cmocka_unit_test(an_owner_that_declines_its_epoch_is_named_under_the_next),
        cmocka_unit_test(an_owner_that_has_outgrown_its_version_is_named_under_the_next),
        cmocka_unit_test(an_owner_whose_clock_is_ahead_gives_the_shard_up),
        cmocka_unit_test(reports_that_are_old_or_too_early_do_not_count),
        cmocka_unit_test(a_claimed_shard_is_left_in_peace_for_the_calm),
        cmocka_unit_test(reports_choose_the_heir_of_a_dead_owner_too),
        cmocka_unit_test(a_transaction_without_an_answer_is_repeated_until_definite),
        cmocka_unit_test(an_unknown_transaction_that_committed_is_not_done_twice),
        cmocka_unit_test(a_deposed_coordinator_writes_nothing),
        cmocka_unit_test(ownership_returns_to_a_node_that_came_back_one_shard_at_a_time),
        cmocka_unit_test(spreading_can_be_switched_off_and_shuns_claimed_nodes),
        cmocka_unit_test(a_deleted_ownership_record_is_not_made_anew),
        cmocka_unit_test(epochs_rise_above_those_of_a_backup_once),
        cmocka_unit_test(a_halted_coordinator_never_acts_again),
        cmocka_unit_test(nothing_is_written_while_a_replica_knows_a_later_record),
        cmocka_unit_test(a_shard_whose_newer_record_never_comes_is_doubted),
        cmocka_unit_test(no_shard_is_placed_that_somebody_holds),
        cmocka_unit_test(a_failover_waits_for_nobodys_word),
        cmocka_unit_test(a_doubting_node_halts_a_coordinator_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
