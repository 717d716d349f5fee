/* records: the core's copy of what etcd holds. Never older than what this process wrote itself. */
#include "coordinator/core/records.h"

#include <stdlib.h>
#include <string.h>

#include "coordinator/core/definitions.h"
#include "coordinator/core/server_keys.h"
#include "runtime/base/check.h"

static void malformed(struct coord *coord, struct slice key, const char *why)
{
    char text[CLUSTER_KEY_SIZE] = { 0 };

    memcpy(text, key.data, key.size < sizeof text ? key.size : sizeof text - 1);
    coord->stats.records_malformed++;
    log_event(coord->log, LOG_ERROR, "coordinator.record_malformed", LOG_S("key", text),
              LOG_S("reason", why));
}

/* ---- the cluster and its policy ---- */
static void put_cluster(struct coord *coord, const struct coord_event *event)
{
    struct cluster_record record;
    struct record_error why;

    if (cluster_record_decode(event->value, &record, &why) != ERR_OK) {
        malformed(coord, event->key, why.text);
        return;
    }
    if (event->mod_revision < coord->cluster_revision)
        return;
    if (coord->shards == NULL) {
        coord->shard_count = record.shard_count;
        coord->shards = mem_zalloc(record.shard_count * sizeof *coord->shards);
        for (uint32_t i = 0; i < record.shard_count; i++)
            coord->shards[i].stale_revision = -1;
        log_event(coord->log, LOG_INFO, "coordinator.cluster_known",
                  LOG_S("cluster_id", record.cluster_id), LOG_N("shards", record.shard_count),
                  LOG_N("replication_factor", record.replication_factor));
    }
    if (record.shard_count != coord->shard_count) {
        malformed(coord, event->key, "shard_count changed; it is fixed for ever");
        return;
    }
    /* A policy of another generation stands before it in the shards' order. */
    for (uint32_t i = 0; i < coord->shard_count && record.generation != coord->cluster.generation;
         i++)
        coord->shards[i].policy_revision = 0;
    coord->cluster = record;
    coord->cluster_revision = event->mod_revision;
}

static void put_policy(struct coord *coord, const struct coord_event *event)
{
    if (event->mod_revision <= coord->policy_revision)
        return;
    Holdfast__V1__Policy *policy =
        holdfast__v1__policy__unpack(NULL, event->value.size, event->value.data);

    if (policy == NULL) {
        malformed(coord, event->key, "not a packed holdfast.v1.Policy");
        return;
    }
    buf_clear(&coord->policy);
    buf_append(&coord->policy, event->value.data, event->value.size);
    coord->policy_revision = event->mod_revision;
    coord->policy_version = policy->version;
    log_event(coord->log, LOG_INFO, "coordinator.policy_known", LOG_N("version", policy->version));
    holdfast__v1__policy__free_unpacked(policy, NULL);
}

/* ---- nodes ---- */

/* Where the node is, or would be. */
static uint32_t node_place(const struct coord *coord, uint64_t replica_id)
{
    uint32_t low = 0, high = coord->node_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (coord->nodes[middle].record.replica_id < replica_id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct node *node_find(struct coord *coord, uint64_t replica_id)
{
    uint32_t place = node_place(coord, replica_id);

    if (place == coord->node_count || coord->nodes[place].record.replica_id != replica_id)
        return NULL;
    return &coord->nodes[place];
}

static struct node *node_add(struct coord *coord, uint64_t replica_id)
{
    uint32_t place = node_place(coord, replica_id);

    if (coord->node_count == CLUSTER_NODES_MAX)
        return NULL;
    memmove(&coord->nodes[place + 1], &coord->nodes[place],
            (coord->node_count - place) * sizeof coord->nodes[0]);
    coord->node_count++;
    coord->nodes[place] = (struct node){ 0 };
    coord->node_added_ms = coord->now_ms;
    return &coord->nodes[place];
}

/* A node writes its record once in a life. Should it write it again unchanged but for its address
 * or the like, that is the same life; a coordinator that did not see the earlier one takes it for
 * a new life, at the price of one epoch. Returns the node if its life is new, or else 0. */
static uint64_t put_node(struct coord *coord, const struct coord_event *event)
{
    struct node_record record;
    struct record_error why;

    if (node_record_decode(event->value, &record, &why) != ERR_OK) {
        malformed(coord, event->key, why.text);
        return 0;
    }
    struct node *node = node_find(coord, record.replica_id);
    bool same_life = node != NULL && node->record.started_at_ms == record.started_at_ms &&
                     event->create_revision <= node->life_revision;

    if (node != NULL && event->mod_revision <= node->mod_revision)
        return 0;
    if (node == NULL)
        node = node_add(coord, record.replica_id);
    if (node == NULL) {
        malformed(coord, event->key, "more nodes than a cluster may have");
        return 0;
    }
    node->record = record;
    node->mod_revision = event->mod_revision;
    if (same_life)
        return 0;
    node->life_revision = event->mod_revision;
    node->since_ms = coord->now_ms;
    log_event(coord->log, LOG_INFO, "coordinator.node_up", LOG_N("node", record.replica_id),
              LOG_S("name", record.name), LOG_S("address", record.address));
    return record.replica_id;
}

static bool delete_node(struct coord *coord, uint64_t replica_id)
{
    struct node *node = node_find(coord, replica_id);

    if (node == NULL)
        return false;
    size_t place = (size_t)(node - coord->nodes);

    log_event(coord->log, LOG_WARN, "coordinator.node_down", LOG_N("node", replica_id),
              LOG_S("name", node->record.name));
    coord->node_count--;
    memmove(node, node + 1, (coord->node_count - place) * sizeof *node);
    return true;
}

/* ---- shards ---- */
void shard_adopt(struct coord *coord, uint32_t number, const struct shard_record *record,
                 int64_t mod_revision)
{
    struct shard *shard = &coord->shards[number];

    if (mod_revision <= shard->mod_revision)
        return;
    shard->record = *record;
    shard->mod_revision = mod_revision;
    shard->seen = true;
    if (coord->synced)
        shard->changed_ms = coord->now_ms;
}

uint64_t epoch_after(const struct coord *coord, const struct shard *shard)
{
    uint64_t epoch = shard->mod_revision > 0 ? shard->record.epoch : 0;

    return (epoch > coord->cluster.epoch_floor ? epoch : coord->cluster.epoch_floor) + 1;
}

static void put_shard(struct coord *coord, const struct coord_event *event, uint32_t number)
{
    struct shard_record record;
    struct record_error why;

    if (number >= coord->shard_count)
        malformed(coord, event->key, "the cluster has no such shard");
    else if (shard_record_decode(event->value, &record, &why) != ERR_OK)
        malformed(coord, event->key, why.text);
    else
        shard_adopt(coord, number, &record, event->mod_revision);
}

/* Must never happen: a new record would begin at epoch 1, below what replicas promised. */
static void delete_shard(struct coord *coord, const struct coord_event *event, uint32_t number)
{
    if (number >= coord->shard_count || coord->shards[number].mod_revision == 0)
        return;
    coord->shards[number].mod_revision = 0;
    malformed(coord, event->key, "the ownership record was deleted; it is not made again");
}

/* ---- wishes ---- */
static struct wanted_node *wanted_get(struct coord *coord, uint64_t replica_id)
{
    for (uint32_t i = 0; i < coord->wanted_count; i++) {
        if (coord->wanted[i].replica_id == replica_id)
            return &coord->wanted[i];
    }
    if (coord->wanted_count == CLUSTER_NODES_MAX)
        return NULL;
    coord->wanted[coord->wanted_count] = (struct wanted_node){ .replica_id = replica_id };
    return &coord->wanted[coord->wanted_count++];
}

static const struct wanted_node *wanted_find(const struct coord *coord, uint64_t replica_id)
{
    for (uint32_t i = 0; i < coord->wanted_count; i++) {
        if (coord->wanted[i].replica_id == replica_id)
            return &coord->wanted[i];
    }
    return NULL;
}

bool node_is_leaving(const struct coord *coord, uint64_t replica_id)
{
    return wanted_find(coord, replica_id) != NULL;
}

bool node_is_removed(const struct coord *coord, uint64_t replica_id)
{
    const struct wanted_node *wanted = wanted_find(coord, replica_id);

    return wanted != NULL && wanted->wish.kind == NODE_REMOVE;
}

static void put_node_wish(struct coord *coord, const struct coord_event *event, uint64_t replica_id)
{
    struct node_wish wish;
    struct record_error why;

    if (node_wish_decode(event->value, &wish, &why) != ERR_OK) {
        malformed(coord, event->key, why.text);
        return;
    }
    struct wanted_node *wanted = wanted_get(coord, replica_id);

    if (wanted == NULL)
        malformed(coord, event->key, "more nodes than a cluster may have");
    else if (event->mod_revision > wanted->mod_revision)
        *wanted = (struct wanted_node){ replica_id, wish, event->mod_revision, false };
}

static void delete_node_wish(struct coord *coord, uint64_t replica_id)
{
    for (uint32_t i = 0; i < coord->wanted_count; i++) {
        if (coord->wanted[i].replica_id != replica_id)
            continue;
        coord->wanted_count--;
        memmove(&coord->wanted[i], &coord->wanted[i + 1],
                (coord->wanted_count - i) * sizeof coord->wanted[0]);
        return;
    }
}

static void put_shard_wish(struct coord *coord, const struct coord_event *event, uint32_t number)
{
    struct shard_wish wish;
    struct record_error why;

    if (number >= coord->shard_count) {
        malformed(coord, event->key, "the cluster has no such shard");
        return;
    }
    struct shard *shard = &coord->shards[number];

    if (shard_wish_decode(event->value, &wish, &why) != ERR_OK) {
        malformed(coord, event->key, why.text);
    } else if (event->mod_revision > shard->wish_revision) {
        shard->wish = wish;
        shard->lost_since_ms = 0;
        shard->wish_revision = event->mod_revision;
        shard->wish_in_txn = false;
    }
}

static void delete_shard_wish(struct coord *coord, uint32_t number)
{
    if (number >= coord->shard_count)
        return;
    coord->shards[number].wish_revision = 0;
    coord->shards[number].wish_in_txn = false;
}

/* ---- game servers ---- */
static uint32_t server_place(const struct coord *coord, struct incarnation incarnation)
{
    uint32_t low = 0, high = coord->server_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (incarnation_compare(coord->servers[middle]->incarnation, incarnation) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct server *server_find(struct coord *coord, struct incarnation incarnation)
{
    uint32_t place = server_place(coord, incarnation);

    if (place == coord->server_count ||
        incarnation_compare(coord->servers[place]->incarnation, incarnation) != 0)
        return NULL;
    return coord->servers[place];
}

void server_remove(struct coord *coord, struct server *server)
{
    uint32_t place = server_place(coord, server->incarnation);

    CHECK(place < coord->server_count && coord->servers[place] == server);
    coord->server_count--;
    memmove(&coord->servers[place], &coord->servers[place + 1],
            (coord->server_count - place) * sizeof(struct server *));
    server_keys_drop(server);
    free(server->acks);
    free(server);
}

/* NULL: the limit is reached. */
static struct server *server_get(struct coord *coord, struct incarnation incarnation)
{
    struct server *server = server_find(coord, incarnation);

    if (server != NULL || coord->server_count == COORD_SERVERS_MAX)
        return server;
    if (coord->server_count == coord->server_capacity) {
        coord->server_capacity = coord->server_capacity == 0 ? 64 : coord->server_capacity * 2;
        coord->servers =
            mem_realloc(coord->servers, coord->server_capacity * sizeof(struct server *));
    }
    uint32_t place = server_place(coord, incarnation);

    memmove(&coord->servers[place + 1], &coord->servers[place],
            (coord->server_count - place) * sizeof(struct server *));
    coord->server_count++;
    server = mem_zalloc(sizeof *server);
    server->incarnation = incarnation;
    coord->servers[place] = server;
    return server;
}

static void put_server(struct coord *coord, const struct coord_event *event,
                       const struct cluster_key_parts *parts)
{
    struct server_record record;
    struct record_error why;

    if (server_record_decode(event->value, &record, &why) != ERR_OK) {
        malformed(coord, event->key, why.text);
        return;
    }
    struct server *server = server_get(coord, parts->incarnation);

    if (server == NULL) {
        malformed(coord, event->key, "more game servers than a cluster may have");
    } else if (parts->kind == CLUSTER_KEY_SERVER_LIVE) {
        server->live = true;
        server->gone_ms = 0;
    } else if (event->mod_revision > server->known_revision) {
        server->record = record;
        server_keys_put(coord, server);
        server->known_revision = event->mod_revision;
        server->held_since_ms = record.held_since_ms;
    }
    /* The write that brings it back takes the mark away. An older one, which a range told once
     * more, brings nothing back: its deletion is on its way, too. */
    if (server != NULL && parts->kind == CLUSTER_KEY_SERVER_LIVE &&
        event->mod_revision >= server->known_revision)
        server->held_since_ms = server->record.held_since_ms = 0;
}

static void delete_server(struct coord *coord, const struct cluster_key_parts *parts)
{
    struct server *server = server_find(coord, parts->incarnation);

    if (server == NULL)
        return;
    if (parts->kind == CLUSTER_KEY_SERVER_LIVE)
        server->live = false;
    else
        server->known_revision = 0;
    if (!server->live && server->known_revision == 0)
        server_remove(coord, server);
}

/* ---- all ---- */
uint64_t records_put(struct coord *coord, const struct coord_event *event)
{
    struct cluster_key_parts parts = cluster_key_parse(coord->cluster_name, event->key);

    switch (parts.kind) {
    case CLUSTER_KEY_CLUSTER:
        put_cluster(coord, event);
        break;
    case CLUSTER_KEY_POLICY:
        put_policy(coord, event);
        break;
    case CLUSTER_KEY_NODE:
        return put_node(coord, event);
    case CLUSTER_KEY_SHARD:
        put_shard(coord, event, parts.shard);
        break;
    case CLUSTER_KEY_SERVER_LIVE:
    case CLUSTER_KEY_SERVER_KNOWN:
        put_server(coord, event, &parts);
        break;
    case CLUSTER_KEY_NODE_WISH:
        put_node_wish(coord, event, parts.replica_id);
        break;
    case CLUSTER_KEY_SHARD_WISH:
        put_shard_wish(coord, event, parts.shard);
        break;
    case CLUSTER_KEY_DEFINITION:
        if (!definitions_put(coord, parts.number, parts.version, event->value, event->mod_revision))
            malformed(coord, event->key, "not a version of a definition, or too many of them");
        break;
    case CLUSTER_KEY_ELECTION:
        candidates_put(&coord->candidates, event->key, event->create_revision);
        break;
    case CLUSTER_KEY_SERVER_SEQUENCE:
    case CLUSTER_KEY_UNKNOWN:
        break;
    }
    return 0;
}

bool records_deleted(struct coord *coord, const struct coord_event *event)
{
    struct cluster_key_parts parts = cluster_key_parse(coord->cluster_name, event->key);

    switch (parts.kind) {
    case CLUSTER_KEY_NODE:
        return delete_node(coord, parts.replica_id);
    case CLUSTER_KEY_SHARD:
        delete_shard(coord, event, parts.shard);
        break;
    case CLUSTER_KEY_SERVER_LIVE:
    case CLUSTER_KEY_SERVER_KNOWN:
        delete_server(coord, &parts);
        break;
    case CLUSTER_KEY_NODE_WISH:
        delete_node_wish(coord, parts.replica_id);
        break;
    case CLUSTER_KEY_SHARD_WISH:
        delete_shard_wish(coord, parts.shard);
        break;
    case CLUSTER_KEY_DEFINITION:
        definitions_deleted(coord, parts.number, parts.version);
        break;
    case CLUSTER_KEY_CLUSTER:
    case CLUSTER_KEY_POLICY:
        malformed(coord, event->key, "was deleted; the last one known stays in force");
        break;
    case CLUSTER_KEY_ELECTION:
        candidates_deleted(&coord->candidates, event->key);
        break;
    case CLUSTER_KEY_SERVER_SEQUENCE:
    case CLUSTER_KEY_UNKNOWN:
        break;
    }
    return false;
}
