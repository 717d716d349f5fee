#include "router/core/member_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/cluster/placement.h"

#define CLUSTER "test"
#define SHARDS  16u

struct fixture {
    struct shard_map *map;
    struct member_wishes *wishes;
    struct arena arena;
    Holdfast__V1__ErrorDetail detail;
    struct member_plan plan;
    int64_t revision;
};

static void put(struct fixture *f, struct cluster_key key, struct buf *value)
{
    struct record_error why;

    f->revision++;
    assert_int_equal(shard_map_apply(f->map,
                                     &(struct shard_map_event){ .key = cluster_key_slice(&key),
                                                                .value = buf_slice(value),
                                                                .create_revision = f->revision,
                                                                .mod_revision = f->revision },
                                     NULL, &why),
                     ERR_OK);
    buf_deinit(value);
}

static void node_say(struct fixture *f, uint64_t id, const char *zone,
                     void (*mark)(struct node_record *record, uint32_t shard))
{
    struct node_record record = { .replica_id = id };
    struct buf value = { 0 };

    snprintf(record.name, sizeof record.name, "node-%u", (unsigned)id);
    snprintf(record.address, sizeof record.address, "127.0.0.1:%u", 7000 + (unsigned)id);
    snprintf(record.peer_address, sizeof record.peer_address, "127.0.0.1:80%02u", (unsigned)id);
    snprintf(record.zone, sizeof record.zone, "%s", zone);
    snprintf(record.version, sizeof record.version, "test");
    if (mark != NULL)
        mark(&record, 0);
    node_record_encode(&record, &value);
    put(f, cluster_key_node(CLUSTER, id), &value);
}

static void node_up(struct fixture *f, uint64_t id, const char *zone)
{
    node_say(f, id, zone, NULL);
}

/* Its replica of shard 0 is damaged or quarantined. */
static void node_unfit(struct fixture *f, uint64_t id,
                       void (*mark)(struct node_record *record, uint32_t shard))
{
    static const char *const zones[] = { "a", "b", "c" };

    node_say(f, id, zones[id - 1], mark);
}

static void node_down(struct fixture *f, uint64_t id)
{
    struct cluster_key key = cluster_key_node(CLUSTER, id);

    assert_int_equal(shard_map_apply(f->map,
                                     &(struct shard_map_event){ .deleted = true,
                                                                .key = cluster_key_slice(&key),
                                                                .mod_revision = ++f->revision },
                                     NULL, NULL),
                     ERR_OK);
}

static void place(struct fixture *f, uint32_t shard, const struct shard_wish *members)
{
    struct shard_record record = { .generation = 1,
                                   .epoch = 1,
                                   .config = 1,
                                   .owner = members->members[0],
                                   .member_count = members->member_count };
    struct buf value = { 0 };

    memcpy(record.members, members->members, sizeof record.members);
    shard_record_encode(&record, &value);
    put(f, cluster_key_shard(CLUSTER, shard), &value);
}

static void wish(struct fixture *f, uint64_t id, enum node_wish_kind kind)
{
    struct cluster_key key = cluster_key_node_wish(CLUSTER, id);
    struct node_wish wanted = { kind };
    struct buf value = { 0 };

    node_wish_encode(&wanted, &value);
    member_wishes_take(f->wishes, CLUSTER, cluster_key_slice(&key), buf_slice(&value), 5);
    buf_deinit(&value);
}

/* Nodes 1 to 3 of zones a, b, c, and every shard on all of them. */
static int set_up(void **state)
{
    struct fixture *f = test_calloc(1, sizeof *f);
    struct cluster_record cluster = { .cluster_id = "01890a5d-ac96-774b-bcce-b302099a8057",
                                      .generation = 1,
                                      .shard_count = SHARDS,
                                      .replication_factor = 3,
                                      .created_by = "test" };
    struct buf value = { 0 };

    f->map = shard_map_new(CLUSTER);
    f->wishes = test_calloc(1, sizeof *f->wishes);
    f->plan = (struct member_plan){ f->map, f->wishes, &f->arena, &f->detail };
    cluster_record_encode(&cluster, &value);
    put(f, cluster_key_cluster(CLUSTER), &value);
    node_up(f, 1, "a");
    node_up(f, 2, "b");
    node_up(f, 3, "c");
    for (uint32_t i = 0; i < SHARDS; i++)
        place(f, i,
              &(struct shard_wish){ .member_count = 3,
                                    .members = { 1 + i % 3, 1 + (i + 1) % 3, 1 + (i + 2) % 3 } });
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    shard_map_free(f->map);
    arena_deinit(&f->arena);
    test_free(f->wishes);
    test_free(f);
    return 0;
}

#define assert_refused(f, e, text)                                                                 \
    do {                                                                                           \
        assert_int_not_equal((e), ERR_OK);                                                         \
        assert_non_null(strstr((f)->detail.message, (text)));                                      \
    } while (0)

static void nodes_are_found_by_name_and_by_replica_id(void **state)
{
    struct fixture *f = *state;
    uint64_t id = 0;

    assert_int_equal(member_plan_node(&f->plan, "node", "node-2", &id), ERR_OK);
    assert_int_equal(id, 2);
    node_down(f, 2);
    assert_refused(f, member_plan_node(&f->plan, "node", "node-2", &id), "no such node");
    assert_int_equal(member_plan_node(&f->plan, "node", "2", &id), ERR_OK);
    assert_refused(f, member_plan_node(&f->plan, "from", "77", &id), "no such node");
    assert_string_equal(f->detail.field, "from");
}

static void a_second_drain_is_refused_and_so_is_one_that_leaves_no_owner(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(member_plan_drain(&f->plan, 1), ERR_OK);
    assert_refused(f, member_plan_undrain(&f->plan, 1), "neither drained nor removed");
    wish(f, 1, NODE_DRAIN);
    assert_refused(f, member_plan_drain(&f->plan, 1), "node 1 is drained already");
    assert_int_equal(member_plan_undrain(&f->plan, 1), ERR_OK);
    wish(f, 2, NODE_DRAIN);
    assert_refused(f, member_plan_drain(&f->plan, 3), "no other node could own shard 0");
}

static void no_node_is_removed_that_others_cannot_do_without(void **state)
{
    struct fixture *f = *state;

    assert_refused(f, member_plan_remove(&f->plan, 1), "2 nodes would be left");
    node_up(f, 4, "a");
    assert_int_equal(member_plan_remove(&f->plan, 1), ERR_OK);
    wish(f, 1, NODE_REMOVE);
    assert_refused(f, member_plan_remove(&f->plan, 1), "removed already");
    assert_refused(f, member_plan_remove(&f->plan, 2), "2 nodes would be left");
    node_up(f, 5, "b");
    node_up(f, 6, "c");
    node_down(f, 3);
    assert_refused(f, member_plan_remove(&f->plan, 2), "shard 0 would have no majority");
    assert_int_equal(member_plan_remove(&f->plan, 3), ERR_OK);
}

static void moves_that_make_no_sense_are_refused(void **state)
{
    struct fixture *f = *state;
    struct shard_wish wanted;

    node_up(f, 4, "a");
    assert_refused(f, member_plan_move(&f->plan, SHARDS, 1, 4, &wanted),
                   "shard: there is no such shard: expected 0 to 15, got \"16\"");
    assert_refused(f, member_plan_move(&f->plan, 0, 4, 2, &wanted), "holds no replica of shard 0");
    assert_refused(f, member_plan_move(&f->plan, 0, 1, 2, &wanted),
                   "holds a replica of shard 0 already");
    assert_refused(f, member_plan_move(&f->plan, 0, 1, 9, &wanted), "node 9 is not up");
    node_up(f, 5, "b");
    assert_refused(f, member_plan_move(&f->plan, 0, 1, 5, &wanted), "zone \"b\" of node 5");
    assert_int_equal(member_plan_move(&f->plan, 0, 1, 4, &wanted), ERR_OK);
    assert_true(wanted.member_count == 3 && wanted.members[0] == 4);
    wish(f, 4, NODE_DRAIN);
    assert_refused(f, member_plan_move(&f->plan, 0, 1, 4, &wanted), "drained or removed");
    f->wishes->shards[0] = true;
    assert_refused(f, member_plan_move(&f->plan, 0, 1, 4, &wanted), "change just now");
}

static void a_rebalance_evens_out_and_keeps_zones_apart(void **state)
{
    struct fixture *f = *state;
    struct member_move *moves;
    uint32_t count, held[8] = { 0 };

    assert_int_equal(member_plan_rebalance(&f->plan, &moves, &count), ERR_OK);
    assert_int_equal(count, 0);
    node_up(f, 4, "a");
    node_up(f, 5, "b");
    node_up(f, 6, "c");
    assert_int_equal(member_plan_rebalance(&f->plan, &moves, &count), ERR_OK);
    for (uint32_t i = 0; i < count; i++)
        place(f, moves[i].shard, &moves[i].wish);
    for (uint32_t s = 0; s < SHARDS; s++) {
        const struct shard_record *record = &shard_map_find(f->map, s)->record;
        uint64_t zones = 0;

        for (uint32_t i = 0; i < 3; i++) {
            held[record->members[i]]++;
            zones |= 1u << record->members[i] % 3;
        }
        assert_int_equal(zones, 7);
    }
    for (uint32_t id = 1; id <= 6; id++)
        assert_int_equal(held[id], SHARDS / 2);
    assert_int_equal(member_plan_rebalance(&f->plan, &moves, &count), ERR_OK);
    assert_int_equal(count, 0);
    node_down(f, 6);
    assert_refused(f, member_plan_rebalance(&f->plan, &moves, &count), "node 6, which holds shard");
}

static void a_rebalance_separates_replicas_of_one_zone(void **state)
{
    struct fixture *f = *state;
    struct member_move *moves;
    uint32_t count;

    node_up(f, 4, "a");
    for (uint32_t i = 0; i < SHARDS; i++)
        place(f, i, &(struct shard_wish){ .member_count = 3, .members = { 1, 4, 2 } });
    assert_int_equal(member_plan_rebalance(&f->plan, &moves, &count), ERR_OK);
    assert_int_equal(count, SHARDS);
    for (uint32_t i = 0; i < SHARDS; i++) {
        uint64_t sum = 0;

        for (uint32_t k = 0; k < 3; k++)
            sum += moves[i].wish.members[k] == 4 ? 1 : moves[i].wish.members[k];
        assert_int_equal(sum, 6); /* One of zone a, and 2 and 3. */
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void rebuild_wish(struct fixture *f, uint32_t shard, uint64_t repair)
{
    struct cluster_key key = cluster_key_shard_wish(CLUSTER, shard);
    struct shard_wish wanted = { .member_count = 3, .members = { 1, 2, 3 }, .repair = repair };
    struct buf value = { 0 };

    shard_wish_encode(&wanted, &value);
    member_wishes_take(f->wishes, CLUSTER, cluster_key_slice(&key), buf_slice(&value), 5);
    buf_deinit(&value);
}

/* Shard 0 is owned by node 1. */
static void a_replica_is_rebuilt_while_the_others_are_healthy(void **state)
{
    struct fixture *f = *state;
    enum rebuild_state done;
    struct shard_wish wanted;

    assert_refused(f, member_plan_rebuild(&f->plan, SHARDS, 1, &wanted, &done), "no such shard");
    node_up(f, 4, "a");
    assert_refused(f, member_plan_rebuild(&f->plan, 0, 4, &wanted, &done),
                   "node 4 holds no replica of shard 0");
    assert_int_equal(member_plan_rebuild(&f->plan, 0, 3, &wanted, &done), ERR_OK);
    assert_int_equal(done, REBUILD_HEALTHY);
    node_unfit(f, 3, node_record_mark_quarantined);
    assert_int_equal(member_plan_rebuild(&f->plan, 0, 3, &wanted, &done), ERR_OK);
    assert_int_equal(done, REBUILD_ASKED);
    assert_true(wanted.repair == 3 && wanted.config == 1 && wanted.member_count == 3);
    rebuild_wish(f, 0, 3);
    assert_int_equal(member_plan_rebuild(&f->plan, 0, 3, &wanted, &done), ERR_OK);
    assert_int_equal(done, REBUILD_UNDER_WAY);
    assert_refused(f, member_plan_rebuild(&f->plan, 0, 2, &wanted, &done), "change just now");
}

static void a_rebuild_that_could_cost_rows_is_refused(void **state)
{
    struct fixture *f = *state;
    enum rebuild_state done;
    struct shard_wish wanted;

    node_unfit(f, 1, node_record_mark_quarantined);
    assert_refused(f, member_plan_rebuild(&f->plan, 0, 1, &wanted, &done), "node 1 owns shard 0");
    node_unfit(f, 3, node_record_mark_quarantined);
    assert_refused(f, member_plan_rebuild(&f->plan, 0, 3, &wanted, &done),
                   "shard 0 has 1 healthy replicas of 3 but this one");
    node_up(f, 1, "a");
    node_unfit(f, 2, node_record_mark_damaged);
    assert_refused(f, member_plan_rebuild(&f->plan, 0, 3, &wanted, &done),
                   "on node 2 is damaged: its repair comes first");
    assert_refused(f, member_plan_rebuild(&f->plan, 0, 2, &wanted, &done),
                   "on node 2 is damaged: it is repaired by itself");
    node_down(f, 2);
    assert_refused(f, member_plan_rebuild(&f->plan, 0, 3, &wanted, &done),
                   "node 2, which holds shard 0, is not up");
    node_up(f, 2, "b");
    wish(f, 3, NODE_DRAIN);
    assert_refused(f, member_plan_rebuild(&f->plan, 0, 3, &wanted, &done), "could not come back");
    node_down(f, 3);
    assert_refused(f, member_plan_rebuild(&f->plan, 0, 3, &wanted, &done), "node 3 is not up");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nodes_are_found_by_name_and_by_replica_id),
        TEST(a_second_drain_is_refused_and_so_is_one_that_leaves_no_owner),
        TEST(no_node_is_removed_that_others_cannot_do_without),
        TEST(moves_that_make_no_sense_are_refused),
        TEST(a_rebalance_evens_out_and_keeps_zones_apart),
        TEST(a_rebalance_separates_replicas_of_one_zone),
        TEST(a_replica_is_rebuilt_while_the_others_are_healthy),
        TEST(a_rebuild_that_could_cost_rows_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
