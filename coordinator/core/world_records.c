/* What tests put into the world's etcd, as nodes, game servers and operators do, and read of it. */
#include <stdio.h>
#include <string.h>

#include "coordinator/core/world.h"
#include "runtime/base/check.h"

#define CLUSTER WORLD_CLUSTER
#define SHARDS  WORLD_SHARDS

/* ---- nodes and servers ---- */
void world_node_up(struct world *world, uint64_t replica_id, uint64_t life)
{
    world_node_up_in(world, replica_id, life, "");
}

void world_wish_node(struct world *world, uint64_t replica_id, enum node_wish_kind kind)
{
    struct node_wish wish = { kind };
    struct buf value = { 0 };

    node_wish_encode(&wish, &value);
    world_put(world, cluster_key_node_wish(CLUSTER, replica_id), &value);
}

void world_unwish_node(struct world *world, uint64_t replica_id)
{
    struct cluster_key key = cluster_key_node_wish(CLUSTER, replica_id);

    world_remove(world, cluster_key_slice(&key));
}

void world_wish_shard(struct world *world, uint32_t shard, const struct shard_wish *wish)
{
    struct buf value = { 0 };

    shard_wish_encode(wish, &value);
    world_put(world, cluster_key_shard_wish(CLUSTER, shard), &value);
}

static void put_node(struct world *world, struct node_record *record)
{
    struct buf value = { 0 };
    uint64_t replica_id = record->replica_id;

    snprintf(record->name, sizeof record->name, "node-%u", (unsigned)replica_id);
    snprintf(record->address, sizeof record->address, "127.0.0.1:%u", 7000 + (unsigned)replica_id);
    snprintf(record->peer_address, sizeof record->peer_address, "127.0.0.1:%u",
             8000 + (unsigned)replica_id);
    snprintf(record->version, sizeof record->version, "%s",
             world->version != NULL ? world->version : "test");
    node_record_encode(record, &value);
    world_put(world, cluster_key_node(CLUSTER, replica_id), &value);
}

void world_node_damaged(struct world *world, uint64_t replica_id, uint64_t life, uint32_t shard)
{
    struct node_record record = { .replica_id = replica_id, .started_at_ms = life };

    if (shard != UINT32_MAX)
        node_record_mark_damaged(&record, shard);
    put_node(world, &record);
}

void world_node_quarantined(struct world *world, uint64_t replica_id, uint64_t life, uint32_t shard)
{
    struct node_record record = { .replica_id = replica_id, .started_at_ms = life };

    if (shard != UINT32_MAX)
        node_record_mark_quarantined(&record, shard);
    put_node(world, &record);
}

void world_node_doubts(struct world *world, uint64_t replica_id, uint64_t generation)
{
    struct node_record record = { .replica_id = replica_id,
                                  .started_at_ms = 1,
                                  .doubts = generation };

    put_node(world, &record);
}

void world_node_up_in(struct world *world, uint64_t replica_id, uint64_t life, const char *zone)
{
    struct node_record record = { .replica_id = replica_id, .started_at_ms = life };

    snprintf(record.zone, sizeof record.zone, "%s", zone);
    put_node(world, &record);
}

void world_node_down(struct world *world, uint64_t replica_id)
{
    struct cluster_key key = cluster_key_node(CLUSTER, replica_id);

    world_remove(world, cluster_key_slice(&key));
    world_settle(world);
}

void world_start(struct world *world)
{
    for (uint64_t id = 1; id <= 3; id++)
        world_node_up(world, id, 1);
    world_elect(world);
    world_run(world, 3000);
    for (uint32_t i = 0; i < SHARDS; i++)
        CHECK(world_shard(world, i).epoch == 1);
}

static void put_server(struct world *world, struct cluster_key key, const char *key_id)
{
    struct server_record record = { .name = "server", .ttl_ms = 6000, .lease_id = 77 };
    struct buf value = { 0 };

    (void)snprintf(record.key, sizeof record.key, "%s", key_id);
    server_record_encode(&record, &value);
    world_put(world, key, &value);
}

void world_server_of_key(struct world *world, uint64_t revision, const char *key_id)
{
    struct incarnation incarnation = { 1, revision };

    put_server(world, cluster_key_server_known(CLUSTER, incarnation), key_id);
    put_server(world, cluster_key_server_live(CLUSTER, incarnation), key_id);
}

void world_server_gone(struct world *world, uint64_t revision)
{
    struct cluster_key key = cluster_key_server_live(CLUSTER, (struct incarnation){ 1, revision });

    world_remove(world, cluster_key_slice(&key));
}

void world_server_back(struct world *world, uint64_t revision)
{
    put_server(world, cluster_key_server_live(CLUSTER, (struct incarnation){ 1, revision }), "");
}

void world_server_hold_text(struct world *world, uint64_t revision, const char *text)
{
    struct buf value = { 0 };
    char json[192];
    int size = snprintf(
        json, sizeof json,
        "{\"name\":\"server\",\"ttl_ms\":6000,\"state\":\"live\",\"lease_id\":\"77\"%s%s%s}",
        text != NULL ? ",\"held_since_ms\":\"" : "", text != NULL ? text : "",
        text != NULL ? "\"" : "");

    CHECK(size > 0 && (size_t)size < sizeof json);
    buf_append(&value, json, (size_t)size);
    world_put(world, cluster_key_server_known(CLUSTER, (struct incarnation){ 1, revision }),
              &value);
}

void world_set_policy(struct world *world, uint64_t version)
{
    Holdfast__V1__Policy policy = HOLDFAST__V1__POLICY__INIT;
    struct buf value = { 0 };

    policy.version = version;
    value.size = holdfast__v1__policy__pack(&policy, buf_reserve(&value, 64));
    world_put(world, cluster_key_policy(CLUSTER), &value);
}

void world_raise_epochs(struct world *world, uint64_t floor)
{
    struct cluster_record record = *coord_cluster(world->coord);
    struct buf value = { 0 };

    record.generation++;
    record.epoch_floor = floor;
    cluster_record_encode(&record, &value);
    world_put(world, cluster_key_cluster(CLUSTER), &value);
}

void world_report(struct world *world, uint64_t reporter, uint32_t shard, const char *reason,
                  uint64_t counter)
{
    struct shard_record record = world_shard(world, shard);
    Holdfast__V1__Dot last = HOLDFAST__V1__DOT__INIT;
    Holdfast__Internal__V1__ShardPosition position = HOLDFAST__INTERNAL__V1__SHARD_POSITION__INIT;
    Holdfast__Internal__V1__ShardPosition *positions[] = { &position };
    Holdfast__Internal__V1__ReportOwnerRequest report =
        HOLDFAST__INTERNAL__V1__REPORT_OWNER_REQUEST__INIT;
    char text[16];

    snprintf(text, sizeof text, "%s", reason);
    last.epoch = record.epoch;
    last.counter = counter;
    position.shard = shard;
    position.epoch = record.epoch;
    position.last = &last;
    report.reporter = reporter;
    report.owner = record.owner;
    report.reason = text;
    report.since_ms = strcmp(reason, "closed") == 0 ? 300 : 1500;
    if (world->since_ms > 0)
        report.since_ms = world->since_ms;
    report.shards = positions;
    report.n_shards = 1;
    world_step(world, (struct coord_event){ .type = COORD_REPORT, .report = &report });
    world_settle(world);
}

/* ---- what etcd holds ---- */
int64_t world_revision_of(struct world *world, struct slice key)
{
    const struct world_kv *kv = world_find(world, key);

    return kv != NULL ? kv->mod_revision : 0;
}

bool world_shard_wish(struct world *world, uint32_t shard, struct shard_wish *ret_wish)
{
    struct cluster_key key = cluster_key_shard_wish(CLUSTER, shard);
    const struct world_kv *kv = world_find(world, cluster_key_slice(&key));

    return kv != NULL && shard_wish_decode(buf_slice(&kv->value), ret_wish, NULL) == ERR_OK;
}

void world_age_shard(struct world *world, uint32_t shard)
{
    struct cluster_key key = cluster_key_shard(CLUSTER, shard);

    world_find(world, cluster_key_slice(&key))->mod_revision--;
}

uint32_t world_owned(struct world *world, uint64_t replica_id)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < SHARDS; i++)
        count += world_shard(world, i).owner == replica_id;
    return count;
}

bool world_has(struct world *world, struct cluster_key key)
{
    return world_find(world, cluster_key_slice(&key)) != NULL;
}

bool world_server_known(struct world *world, uint64_t revision)
{
    return world_has(world, cluster_key_server_known(CLUSTER, (struct incarnation){ 1, revision }));
}

enum server_state world_server_state(struct world *world, uint64_t revision)
{
    struct cluster_key key = cluster_key_server_known(CLUSTER, (struct incarnation){ 1, revision });
    struct world_kv *kv = world_find(world, cluster_key_slice(&key));
    struct server_record record;

    CHECK(kv != NULL);
    CHECK(server_record_decode(buf_slice(&kv->value), &record, NULL) == ERR_OK);
    return record.state;
}

struct coord_stats world_stats(struct world *world)
{
    struct coord_stats stats;

    coord_stats_get(world->coord, &stats);
    return stats;
}
