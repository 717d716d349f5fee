#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "runtime/cluster/placement.h"

enum { SHARDS = 256 };

static const char *const zones[] = { "a", "b", "c" };

static uint32_t make_nodes(struct placement_node *nodes, uint32_t count, uint32_t zone_count)
{
    for (uint32_t i = 0; i < count; i++)
        nodes[i] = (struct placement_node){ 1000 + i, zones[i % zone_count], false };
    return count;
}

static const char *zone_of(uint64_t replica_id, uint32_t zone_count)
{
    return zones[(replica_id - 1000) % zone_count];
}

static void plan(struct placement_shard *shards, const struct placement_node *nodes, uint32_t count,
                 uint32_t factor)
{
    uint64_t owners[CLUSTER_NODES_MAX];

    for (uint32_t s = 0; s < SHARDS; s++)
        shards[s].member_count = placement_members(s, nodes, count, factor, shards[s].members);
    for (uint32_t i = 0; i < count; i++)
        owners[i] = nodes[i].replica_id;
    placement_balance(shards, SHARDS, owners, count);
}

static uint32_t owned_by(const struct placement_shard *shards, uint64_t replica_id)
{
    uint32_t owned = 0;

    for (uint32_t s = 0; s < SHARDS; s++)
        owned += shards[s].owner == replica_id ? 1u : 0u;
    return owned;
}

static uint32_t members_moved(const struct placement_shard *a, const struct placement_shard *b)
{
    uint32_t moved = 0;

    for (uint32_t s = 0; s < SHARDS; s++) {
        for (uint32_t i = 0; i < b[s].member_count; i++) {
            bool kept = false;
            for (uint32_t j = 0; j < a[s].member_count; j++)
                kept = kept || a[s].members[j] == b[s].members[i];
            moved += kept ? 0u : 1u;
        }
    }
    return moved;
}

static void entities_spread_over_all_shards(void **state)
{
    uint32_t count[64] = { 0 };
    (void)state;

    for (uint32_t i = 0; i < 64000; i++) {
        char id[32];
        snprintf(id, sizeof id, "player:%u", i);
        count[shard_of_entity(slice_from_text(id), 64)]++;
    }
    for (uint32_t s = 0; s < 64; s++)
        assert_in_range(count[s], 850, 1150);
    assert_int_equal(shard_of_entity(SLICE_LITERAL("x"), 1), 0);
}

/* Doubling the shards splits each in two neighbours. */
static void shard_is_the_top_bits_of_the_hash(void **state)
{
    struct slice id = SLICE_LITERAL("player:7");
    (void)state;

    assert_int_equal(shard_of_entity(id, 64), hash_u64(id) >> 58);
    assert_int_equal(shard_of_entity(id, 64), shard_of_entity(id, 128) / 2);
    assert_int_equal(shard_of_entity(id, 4096), hash_u64(id) >> 52);
}

/* A change of hash would orphan every stored player: these values are fixed for ever. */
static void shards_of_known_entities_never_change(void **state)
{
    (void)state;
    assert_int_equal(hash_u64(SLICE_LITERAL("")) >> 52, 0x2d0);
    assert_int_equal(shard_of_entity(SLICE_LITERAL(""), 4096), 0x2d0);
}

static void members_are_distinct_and_spread_over_zones(void **state)
{
    struct placement_node nodes[6];
    uint32_t count = make_nodes(nodes, 6, 3);
    (void)state;

    for (uint32_t s = 0; s < SHARDS; s++) {
        uint64_t m[CLUSTER_MEMBERS_MAX];
        assert_int_equal(placement_members(s, nodes, count, 3, m), 3);
        assert_string_not_equal(zone_of(m[0], 3), zone_of(m[1], 3));
        assert_string_not_equal(zone_of(m[0], 3), zone_of(m[2], 3));
        assert_string_not_equal(zone_of(m[1], 3), zone_of(m[2], 3));
    }
}

static void fewer_nodes_than_replicas_gives_all_nodes(void **state)
{
    struct placement_node nodes[2];
    uint64_t m[CLUSTER_MEMBERS_MAX];
    (void)state;

    assert_int_equal(placement_members(0, nodes, make_nodes(nodes, 2, 1), 3, m), 2);
    assert_int_not_equal(m[0], m[1]);
    assert_int_equal(placement_members(0, nodes, 0, 3, m), 0);
}

static void order_of_the_list_does_not_matter(void **state)
{
    static struct placement_shard a[SHARDS], b[SHARDS];
    struct placement_node nodes[7], reversed[7];
    (void)state;

    make_nodes(nodes, 7, 3);
    for (uint32_t i = 0; i < 7; i++)
        reversed[i] = nodes[6 - i];
    plan(a, nodes, 7, 3);
    plan(b, reversed, 7, 3);
    assert_memory_equal(a, b, sizeof a);
}

static void ownership_differs_by_at_most_one(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= 11; count++) {
        static struct placement_shard shards[SHARDS];
        struct placement_node nodes[11];
        memset(shards, 0, sizeof shards);
        plan(shards, nodes, make_nodes(nodes, count, 1), 3);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t owned = owned_by(shards, nodes[i].replica_id);
            assert_in_range(owned, SHARDS / count, (SHARDS + count - 1) / count);
        }
    }
}

/* 4 nodes to 5: a fifth of the replicas is the least that can move. */
static void new_node_moves_only_its_own_share(void **state)
{
    static struct placement_shard before[SHARDS], after[SHARDS];
    struct placement_node nodes[5];
    (void)state;

    make_nodes(nodes, 5, 1);
    plan(before, nodes, 4, 3);
    memcpy(after, before, sizeof after);
    plan(after, nodes, 5, 3);
    uint32_t moved = members_moved(before, after);
    assert_in_range(moved, SHARDS * 3 / 5 - 40, SHARDS * 3 / 5 + 40);
    for (uint32_t s = 0; s < SHARDS; s++) {
        for (uint32_t i = 0; i < 3; i++) {
            bool old = false;
            for (uint32_t j = 0; j < 3; j++)
                old = old || before[s].members[j] == after[s].members[i];
            assert_true(old || after[s].members[i] == 1004);
        }
    }
}

/* Replacing a dead owner: only its shards get new owners, and the rest share them evenly. */
static void dead_node_hands_over_its_shards_evenly(void **state)
{
    static struct placement_shard shards[SHARDS];
    struct placement_node nodes[4];
    uint64_t live[3] = { 1001, 1002, 1003 };
    (void)state;

    memset(shards, 0, sizeof shards);
    plan(shards, nodes, make_nodes(nodes, 4, 1), 3);
    assert_int_equal(owned_by(shards, 1000), 64);
    assert_in_range(placement_balance(shards, SHARDS, live, 3), 64, 70);
    assert_int_equal(owned_by(shards, 1000), 0);
    for (uint32_t i = 0; i < 3; i++)
        assert_in_range(owned_by(shards, live[i]), 85, 86);
    assert_int_equal(placement_balance(shards, SHARDS, live, 3), 0);
}

static void shard_without_a_live_member_has_no_owner(void **state)
{
    struct placement_shard shard = { .member_count = 1, .members = { 5 }, .owner = 5 };
    uint64_t live = 6;
    (void)state;

    assert_int_equal(placement_balance(&shard, 1, &live, 1), 1);
    assert_int_equal(shard.owner, 0);
    assert_int_equal(placement_balance(&shard, 1, &live, 0), 0);
}

/* A node that replaces a leaving one keeps the spread over zones, and leaves the others. */
static void who_joins_is_of_the_zone_that_is_used_least(void **state)
{
    struct placement_node nodes[6];
    uint64_t members[CLUSTER_MEMBERS_MAX];

    (void)state;
    make_nodes(nodes, 6, 3);
    for (uint32_t s = 0; s < SHARDS; s++) {
        assert_int_equal(placement_members(s, nodes, 6, 3, members), 3);
        uint64_t chosen = placement_next(s, nodes, 6, members, 2);
        assert_int_equal(chosen, members[2]); /* As it was chosen at first. */
        for (uint32_t i = 0; i < 6; i++)
            nodes[i].closed = nodes[i].replica_id == members[2];
        uint64_t other = placement_next(s, nodes, 6, members, 2);
        assert_int_not_equal(other, members[2]);
        uint32_t at = 0, before = 0;
        while (nodes[at].replica_id != other)
            at++;
        while (nodes[before].replica_id != members[2])
            before++;
        assert_string_equal(nodes[at].zone, nodes[before].zone);
        for (uint32_t i = 0; i < 6; i++)
            nodes[i].closed = true;
        assert_int_equal(placement_next(s, nodes, 6, members, 2), 0);
        for (uint32_t i = 0; i < 6; i++)
            nodes[i].closed = false;
    }
    assert_int_equal(placement_next(0, nodes, 3, members, 0) != 0, 1);
    assert_int_equal(placement_next(0, nodes, 0, members, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entities_spread_over_all_shards),
        cmocka_unit_test(shard_is_the_top_bits_of_the_hash),
        cmocka_unit_test(shards_of_known_entities_never_change),
        cmocka_unit_test(members_are_distinct_and_spread_over_zones),
        cmocka_unit_test(fewer_nodes_than_replicas_gives_all_nodes),
        cmocka_unit_test(order_of_the_list_does_not_matter),
        cmocka_unit_test(ownership_differs_by_at_most_one),
        cmocka_unit_test(new_node_moves_only_its_own_share),
        cmocka_unit_test(dead_node_hands_over_its_shards_evenly),
        cmocka_unit_test(shard_without_a_live_member_has_no_owner),
        cmocka_unit_test(who_joins_is_of_the_zone_that_is_used_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
