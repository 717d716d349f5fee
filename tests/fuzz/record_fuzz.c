/*
 * record_fuzz: the cluster's records and keys as etcd holds them, and the map made from them. The
 * first byte picks the record; MAP: the rest is key, NUL, value, repeated with 0x01 between.
 */
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/cluster/cluster_record.h"
#include "runtime/cluster/shard_map.h"
#include "tests/fuzz/fuzz.h"

enum kind { KIND_CLUSTER, KIND_NODE, KIND_SHARD, KIND_SERVER, KIND_COORDINATOR, KIND_MAP };

#define CLUSTER_NAME "dev"

/* What decodes also encodes, and that again decodes to the same bytes. */
#define CHECK_RECORD(type, json)                                                                   \
    do {                                                                                           \
        struct type##_record record, again;                                                        \
        struct record_error why = { "" };                                                          \
        struct buf first = { 0 }, second = { 0 };                                                  \
        memset(&record, 0, sizeof record);                                                         \
        if (type##_record_decode(json, &record, &why) == ERR_OK) {                                 \
            CHECK(type##_record_validate(&record, &why) == ERR_OK);                                \
            type##_record_encode(&record, &first);                                                 \
            CHECK(type##_record_decode(buf_slice(&first), &again, &why) == ERR_OK);                \
            type##_record_encode(&again, &second);                                                 \
            CHECK(slice_equal(buf_slice(&first), buf_slice(&second)));                             \
        } else {                                                                                   \
            CHECK(why.text[0] != 0);                                                               \
        }                                                                                          \
        buf_deinit(&first);                                                                        \
        buf_deinit(&second);                                                                       \
    } while (0)

static void check_map(const struct shard_map *map)
{
    uint32_t count;
    const struct node_record *nodes = shard_map_nodes(map, &count);

    for (uint32_t i = 0; i < count; i++)
        CHECK(shard_map_find_node(map, nodes[i].replica_id) == &nodes[i]);
    for (uint32_t shard = 0; shard < shard_map_shard_count(map); shard++) {
        const struct shard_entry *entry = shard_map_find(map, shard);
        const struct node_record *owner =
            entry != NULL ? shard_map_find_node(map, entry->record.owner) : NULL;
        CHECK(owner == NULL || owner->replica_id == entry->record.owner);
    }
    (void)shard_map_complete(map);
    (void)shard_map_find_coordinator(map);
}

static void apply_all(struct slice bytes)
{
    struct shard_map *map = shard_map_new(CLUSTER_NAME);
    int64_t revision = 1;
    const uint8_t *end = bytes.data + bytes.size;

    for (const uint8_t *at = bytes.data; at < end;) {
        const uint8_t *stop = memchr(at, 1, (size_t)(end - at));
        const uint8_t *next = stop != NULL ? stop + 1 : end;
        stop = stop != NULL ? stop : end;
        const uint8_t *nul = memchr(at, 0, (size_t)(stop - at));
        struct shard_map_event event = { .key = { at, (size_t)((nul != NULL ? nul : stop) - at) },
                                         .deleted = nul == NULL,
                                         .create_revision = nul == NULL ? 0 : revision,
                                         .mod_revision = revision };
        if (nul != NULL)
            event.value = (struct slice){ nul + 1, (size_t)(stop - nul - 1) };
        struct cluster_key_parts changed;
        struct record_error why = { "" };
        if (shard_map_apply(map, &event, &changed, &why) != ERR_OK)
            CHECK(why.text[0] != 0);
        revision++;
        at = next;
    }
    check_map(map);
    shard_map_free(map);
}

void fuzz_one(struct slice input)
{
    if (input.size == 0)
        return;
    struct slice rest = { input.data + 1, input.size - 1 };
    switch (input.data[0] % (KIND_MAP + 1)) {
    case KIND_CLUSTER:
        CHECK_RECORD(cluster, rest);
        break;
    case KIND_NODE:
        CHECK_RECORD(node, rest);
        break;
    case KIND_SHARD:
        CHECK_RECORD(shard, rest);
        break;
    case KIND_SERVER:
        CHECK_RECORD(server, rest);
        break;
    case KIND_COORDINATOR:
        CHECK_RECORD(coordinator, rest);
        break;
    default:
        apply_all(rest);
        break;
    }
}

static void put_event(struct buf *out, struct cluster_key key, struct buf *value)
{
    buf_append(out, key.text, strlen(key.text));
    if (value != NULL) {
        buf_put_u8(out, 0);
        buf_append(out, value->data, value->size);
        buf_clear(value);
    }
    buf_put_u8(out, 1);
}

static void seed_record(struct fuzz_seeds *seeds, const char *name, uint8_t kind,
                        const struct buf *value)
{
    fuzz_seed_add_kind(seeds, name, kind, buf_slice(value));
}

void fuzz_seed(struct fuzz_seeds *seeds)
{
    static const struct cluster_record cluster = { .cluster_id =
                                                       "0d9b1f5e-8f4a-4e0f-9f0a-1f2e3d4c5b6a",
                                                   .generation = 1,
                                                   .shard_count = 2,
                                                   .replication_factor = 3,
                                                   .created_by = "coordinator",
                                                   .policy_seed = "{\"a\":1}" };
    static const struct node_record node = { .replica_id = 1,
                                             .name = "node-1",
                                             .address = "127.0.0.1:7401",
                                             .peer_address = "127.0.0.1:7402",
                                             .version = "0.1.0",
                                             .started_at_ms = 1750000000000 };
    static const struct shard_record shard = { .generation = 1,
                                               .epoch = 4,
                                               .owner = 1,
                                               .config = 2,
                                               .phase = SHARD_JOINT,
                                               .member_count = 3,
                                               .members = { 1, 2, 3 },
                                               .new_member_count = 3,
                                               .new_members = { 1, 2, 4 } };
    static const struct server_record server = { .name = "lobby", .ttl_ms = 5000, .lease_id = 77 };
    static const struct coordinator_record leader = { .name = "coordinator",
                                                      .address = "127.0.0.1:7403" };
    struct buf value = { 0 };
    struct buf events = { 0 };

    cluster_record_encode(&cluster, &value);
    seed_record(seeds, "cluster", KIND_CLUSTER, &value);
    put_event(&events, cluster_key_cluster(CLUSTER_NAME), &value);
    node_record_encode(&node, &value);
    seed_record(seeds, "node", KIND_NODE, &value);
    put_event(&events, cluster_key_node(CLUSTER_NAME, 1), &value);
    shard_record_encode(&shard, &value);
    seed_record(seeds, "shard", KIND_SHARD, &value);
    put_event(&events, cluster_key_shard(CLUSTER_NAME, 1), &value);
    server_record_encode(&server, &value);
    seed_record(seeds, "server", KIND_SERVER, &value);
    put_event(&events, cluster_key_server_live(CLUSTER_NAME, (struct incarnation){ 1, 9 }), &value);
    coordinator_record_encode(&leader, &value);
    seed_record(seeds, "coordinator", KIND_COORDINATOR, &value);
    buf_append(&events, "/holdfast/dev/election/77", 25);
    buf_put_u8(&events, 0);
    buf_append(&events, value.data, value.size);
    buf_put_u8(&events, 1);
    put_event(&events, cluster_key_shard(CLUSTER_NAME, 1), NULL);
    fuzz_seed_add_kind(seeds, "map", KIND_MAP, buf_slice(&events));
    buf_deinit(&events);
    buf_deinit(&value);
}
