#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/cluster/placement.h"
#include "runtime/cluster/shard_map.h"

#define CLUSTER "test"

static err put(struct shard_map *map, struct cluster_key key, struct buf *value, int64_t revision,
               struct cluster_key_parts *ret_changed)
{
    struct shard_map_event event = { .key = cluster_key_slice(&key),
                                     .value = buf_slice(value),
                                     .create_revision = revision,
                                     .mod_revision = revision };
    err e = shard_map_apply(map, &event, ret_changed, NULL);

    buf_deinit(value);
    return e;
}

static err delete_key(struct shard_map *map, struct cluster_key key, int64_t revision)
{
    struct shard_map_event event = { .deleted = true,
                                     .key = cluster_key_slice(&key),
                                     .mod_revision = revision };
    return shard_map_apply(map, &event, NULL, NULL);
}

static err put_cluster(struct shard_map *map, uint32_t shard_count, int64_t revision)
{
    struct cluster_record record = { .cluster_id = "018f2f3e-0000-7000-8000-000000000001",
                                     .generation = 1,
                                     .shard_count = shard_count,
                                     .replication_factor = 1,
                                     .created_by = "c" };
    struct buf json = { 0 };

    cluster_record_encode(&record, &json);
    return put(map, cluster_key_cluster(CLUSTER), &json, revision, NULL);
}

struct named {
    uint64_t epoch, owner;
};

static err put_shard(struct shard_map *map, uint32_t shard, struct named named, int64_t revision,
                     struct cluster_key_parts *ret_changed)
{
    struct shard_record record = { .generation = 1,
                                   .epoch = named.epoch,
                                   .owner = named.owner,
                                   .config = 1,
                                   .member_count = 1,
                                   .members = { named.owner } };
    struct buf json = { 0 };

    shard_record_encode(&record, &json);
    return put(map, cluster_key_shard(CLUSTER, shard), &json, revision, ret_changed);
}

static err put_node(struct shard_map *map, uint64_t key_id, uint64_t id, int64_t revision)
{
    struct node_record record = {
        .replica_id = id, .name = "n", .address = "h:1", .peer_address = "h:2", .version = "1"
    };
    struct buf json = { 0 };

    node_record_encode(&record, &json);
    return put(map, cluster_key_node(CLUSTER, key_id), &json, revision, NULL);
}

static void append(struct cluster_key *key, const char *text)
{
    size_t used = strlen(key->text);

    snprintf(key->text + used, sizeof key->text - used, "%s", text);
}

static err put_candidate(struct shard_map *map, const char *name, int64_t revision)
{
    struct coordinator_record record = { .address = "h:1" };
    struct cluster_key key = cluster_key_election_prefix(CLUSTER);
    struct buf json = { 0 };

    snprintf(record.name, sizeof record.name, "%s", name);
    append(&key, name);
    coordinator_record_encode(&record, &json);
    return put(map, key, &json, revision, NULL);
}

static void owner_is_found_by_entity(void **state)
{
    struct shard_map *map = shard_map_new(CLUSTER);
    uint32_t shard = 99;
    (void)state;

    assert_false(shard_map_find_shard_of(map, SLICE_LITERAL("p"), &shard));
    assert_int_equal(put_cluster(map, 2, 10), ERR_OK);
    assert_true(shard_map_find_shard_of(map, SLICE_LITERAL("p"), &shard));
    assert_int_equal(shard, shard_of_entity(SLICE_LITERAL("p"), 2));
    assert_null(shard_map_find(map, shard));
    assert_int_equal(put_shard(map, 0, (struct named){ 4, 7 }, 11, NULL), ERR_OK);
    assert_false(shard_map_complete(map));
    assert_int_equal(put_shard(map, 1, (struct named){ 4, 7 }, 12, NULL), ERR_OK);
    assert_true(shard_map_complete(map));
    assert_int_equal(shard_map_find(map, shard)->record.epoch, 4);
    assert_int_equal(shard_map_find(map, shard)->record.owner, 7);
    assert_null(shard_map_find_node(map, 7));
    assert_int_equal(put_node(map, 7, 7, 13), ERR_OK);
    assert_int_equal(shard_map_find_node(map, 7)->replica_id, 7);
    assert_int_equal(delete_key(map, cluster_key_node(CLUSTER, 7), 14), ERR_OK);
    assert_null(shard_map_find_node(map, 7));
    shard_map_free(map);
}

static void older_revision_changes_nothing(void **state)
{
    struct shard_map *map = shard_map_new(CLUSTER);
    struct cluster_key_parts changed;
    (void)state;

    assert_int_equal(put_shard(map, 3, (struct named){ 5, 7 }, 20, &changed), ERR_OK);
    assert_true(changed.kind == CLUSTER_KEY_SHARD && changed.shard == 3);
    assert_int_equal(put_shard(map, 3, (struct named){ 4, 6 }, 19, &changed), ERR_OK);
    assert_int_equal(changed.kind, CLUSTER_KEY_UNKNOWN);
    assert_int_equal(shard_map_find(map, 3)->record.epoch, 5);
    assert_int_equal(shard_map_find(map, 3)->mod_revision, 20);
    shard_map_free(map);
}

static void malformed_record_keeps_what_was_there(void **state)
{
    struct shard_map *map = shard_map_new(CLUSTER);
    struct buf garbage = { 0 };
    (void)state;

    assert_int_equal(put_shard(map, 3, (struct named){ 5, 7 }, 20, NULL), ERR_OK);
    buf_append(&garbage, "{}", 2);
    assert_int_equal(put(map, cluster_key_shard(CLUSTER, 3), &garbage, 21, NULL), ERR_INVALID);
    assert_int_equal(shard_map_find(map, 3)->record.epoch, 5);
    assert_int_equal(put_node(map, 8, 9, 22), ERR_INVALID);
    assert_null(shard_map_find_node(map, 8));
    assert_null(shard_map_find_node(map, 9));
    shard_map_free(map);
}

static void nodes_are_listed_by_rising_id(void **state)
{
    struct shard_map *map = shard_map_new(CLUSTER);
    uint32_t count;
    (void)state;

    for (uint64_t id = 9; id < 10; id -= 2)
        assert_int_equal(put_node(map, id, id, (int64_t)(100 - id)), ERR_OK);
    assert_int_equal(delete_key(map, cluster_key_node(CLUSTER, 5), 200), ERR_OK);
    const struct node_record *nodes = shard_map_nodes(map, &count);
    assert_int_equal(count, 4);
    assert_true(nodes[0].replica_id == 1 && nodes[1].replica_id == 3);
    assert_true(nodes[2].replica_id == 7 && nodes[3].replica_id == 9);
    shard_map_free(map);
}

static void oldest_candidate_leads(void **state)
{
    struct shard_map *map = shard_map_new(CLUSTER);
    struct cluster_key key = cluster_key_election_prefix(CLUSTER);
    (void)state;

    assert_null(shard_map_find_coordinator(map));
    assert_int_equal(put_candidate(map, "b", 6), ERR_OK);
    assert_int_equal(put_candidate(map, "a", 5), ERR_OK);
    assert_string_equal(shard_map_find_coordinator(map)->name, "a");
    append(&key, "a");
    assert_int_equal(delete_key(map, key, 7), ERR_OK);
    assert_string_equal(shard_map_find_coordinator(map)->name, "b");
    shard_map_reset(map);
    assert_null(shard_map_find_coordinator(map));
    assert_null(shard_map_cluster(map));
    assert_int_equal(put_candidate(map, "b", 1), ERR_OK);
    assert_non_null(shard_map_find_coordinator(map));
    shard_map_free(map);
}

static void only_the_cluster_is_known_after_a_reset(void **state)
{
    struct shard_map *map = shard_map_new(CLUSTER);
    (void)state;

    assert_int_equal(put_cluster(map, 2, 90), ERR_OK);
    assert_int_equal(put_shard(map, 0, (struct named){ 4, 7 }, 91, NULL), ERR_OK);
    assert_int_equal(put_node(map, 7, 7, 92), ERR_OK);
    assert_non_null(shard_map_find(map, 0));
    assert_non_null(shard_map_find_node(map, 7));
    shard_map_reset(map);
    assert_int_equal(shard_map_shard_count(map), 2);
    assert_null(shard_map_find(map, 0));
    assert_null(shard_map_find_node(map, 7));
    assert_int_equal(put_cluster(map, 4, 3), ERR_OK); /* Revisions have begun again. */
    assert_int_equal(shard_map_shard_count(map), 4);
    shard_map_free(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owner_is_found_by_entity),
        cmocka_unit_test(older_revision_changes_nothing),
        cmocka_unit_test(malformed_record_keeps_what_was_there),
        cmocka_unit_test(nodes_are_listed_by_rising_id),
        cmocka_unit_test(oldest_candidate_leads),
        cmocka_unit_test(only_the_cluster_is_known_after_a_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
