#include "runtime/cluster/shard_map.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"

enum { CANDIDATES_MAX = 16 };

/* A coordinator that campaigns. */
struct candidate {
    struct cluster_key key;
    int64_t create_revision;
    int64_t mod_revision;
    struct coordinator_record record;
};

struct shard_map {
    char cluster_name[CLUSTER_NAME_MAX + 1];
    int64_t cluster_revision; /* 0: not seen. */
    struct cluster_record cluster;
    uint32_t shards_present; /* Records below shard_count. */
    uint32_t node_count;
    struct node_record nodes[CLUSTER_NODES_MAX]; /* By rising replica id. */
    int64_t node_revisions[CLUSTER_NODES_MAX];
    uint32_t candidate_count;
    struct candidate candidates[CANDIDATES_MAX];
    struct shard_entry shards[CLUSTER_SHARDS_MAX]; /* mod_revision 0: no record. */
};

struct shard_map *shard_map_new(const char *cluster)
{
    struct shard_map *map = mem_zalloc(sizeof *map);

    CHECK(cluster_name_valid(cluster));
    memcpy(map->cluster_name, cluster, strlen(cluster) + 1);
    return map;
}

void shard_map_free(struct shard_map *map)
{
    free(map);
}

void shard_map_reset(struct shard_map *map)
{
    struct cluster_record cluster = map->cluster;
    bool known = map->cluster_revision != 0;
    char name[sizeof map->cluster_name];

    memcpy(name, map->cluster_name, sizeof name);
    memset(map, 0, sizeof *map);
    memcpy(map->cluster_name, name, sizeof name);
    map->cluster = cluster;
    map->cluster_revision = known ? 1 : 0; /* Below that of any key. */
}

static err refuse(struct record_error *ret_why, const char *text)
{
    if (ret_why != NULL)
        memcpy(ret_why->text, text, strlen(text) + 1);
    return ERR_INVALID;
}

static void count_shards(struct shard_map *map)
{
    map->shards_present = 0;
    for (uint32_t s = 0; s < shard_map_shard_count(map); s++)
        map->shards_present += map->shards[s].mod_revision != 0 ? 1u : 0u;
}

static err apply_cluster(struct shard_map *map, const struct shard_map_event *event,
                         struct record_error *ret_why)
{
    if (event->deleted) {
        map->cluster_revision = 0;
        map->cluster = (struct cluster_record){ 0 };
    } else {
        err e = cluster_record_decode(event->value, &map->cluster, ret_why);
        if (e != ERR_OK)
            return e;
        map->cluster_revision = event->mod_revision;
    }
    count_shards(map);
    return ERR_OK;
}

static err apply_shard(struct shard_map *map, uint32_t shard, const struct shard_map_event *event,
                       struct record_error *ret_why)
{
    struct shard_entry *entry = &map->shards[shard];

    if (event->deleted) {
        *entry = (struct shard_entry){ 0 };
    } else {
        err e = shard_record_decode(event->value, &entry->record, ret_why);
        if (e != ERR_OK)
            return e;
        entry->mod_revision = event->mod_revision;
    }
    count_shards(map);
    return ERR_OK;
}

/* Where the node is, or where it would go. */
static uint32_t node_position(const struct shard_map *map, uint64_t replica_id, bool *ret_found)
{
    uint32_t low = 0;
    uint32_t high = map->node_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (map->nodes[middle].replica_id < replica_id)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_found = low < map->node_count && map->nodes[low].replica_id == replica_id;
    return low;
}

static void node_remove(struct shard_map *map, uint32_t at)
{
    size_t behind = map->node_count - at - 1;

    memmove(&map->nodes[at], &map->nodes[at + 1], behind * sizeof map->nodes[0]);
    memmove(&map->node_revisions[at], &map->node_revisions[at + 1],
            behind * sizeof map->node_revisions[0]);
    map->node_count--;
}

static void node_make_room(struct shard_map *map, uint32_t at)
{
    size_t behind = map->node_count - at;

    memmove(&map->nodes[at + 1], &map->nodes[at], behind * sizeof map->nodes[0]);
    memmove(&map->node_revisions[at + 1], &map->node_revisions[at],
            behind * sizeof map->node_revisions[0]);
    map->node_count++;
}

static err apply_node(struct shard_map *map, uint64_t replica_id,
                      const struct shard_map_event *event, struct record_error *ret_why)
{
    struct node_record record;
    bool found;
    uint32_t at = node_position(map, replica_id, &found);

    if (event->deleted) {
        if (found)
            node_remove(map, at);
        return ERR_OK;
    }
    err e = node_record_decode(event->value, &record, ret_why);
    if (e != ERR_OK)
        return e;
    if (record.replica_id != replica_id)
        return refuse(ret_why, "node record: replica_id: not that of its key");
    if (!found && map->node_count == CLUSTER_NODES_MAX)
        return refuse(ret_why, "node record: more than 256 nodes");
    if (!found)
        node_make_room(map, at);
    map->nodes[at] = record;
    map->node_revisions[at] = event->mod_revision;
    return ERR_OK;
}

static uint32_t candidate_position(const struct shard_map *map, struct slice key)
{
    for (uint32_t i = 0; i < map->candidate_count; i++) {
        if (slice_equal(cluster_key_slice(&map->candidates[i].key), key))
            return i;
    }
    return map->candidate_count;
}

static err apply_candidate(struct shard_map *map, const struct shard_map_event *event,
                           struct record_error *ret_why)
{
    uint32_t at = candidate_position(map, event->key);
    struct candidate candidate = { .create_revision = event->create_revision,
                                   .mod_revision = event->mod_revision };

    if (event->deleted) {
        if (at < map->candidate_count)
            map->candidates[at] = map->candidates[--map->candidate_count];
        return ERR_OK;
    }
    err e = coordinator_record_decode(event->value, &candidate.record, ret_why);
    if (e != ERR_OK)
        return e;
    if (at == CANDIDATES_MAX)
        return refuse(ret_why, "coordinator record: more than 16 candidates");
    if (event->key.size >= sizeof candidate.key.text)
        return refuse(ret_why, "coordinator record: key is too long");
    memcpy(candidate.key.text, event->key.data, event->key.size);
    map->candidates[at] = candidate;
    if (at == map->candidate_count)
        map->candidate_count++;
    return ERR_OK;
}

/* The revision held for this key; 0 for none. */
static int64_t revision_held(const struct shard_map *map, const struct cluster_key_parts *parts,
                             struct slice key)
{
    bool found;
    uint32_t at;

    switch (parts->kind) {
    case CLUSTER_KEY_CLUSTER:
        return map->cluster_revision;
    case CLUSTER_KEY_SHARD:
        return map->shards[parts->shard].mod_revision;
    case CLUSTER_KEY_NODE:
        at = node_position(map, parts->replica_id, &found);
        return found ? map->node_revisions[at] : 0;
    case CLUSTER_KEY_ELECTION:
        at = candidate_position(map, key);
        return at < map->candidate_count ? map->candidates[at].mod_revision : 0;
    default:
        return 0;
    }
}

err shard_map_apply(struct shard_map *map, const struct shard_map_event *event,
                    struct cluster_key_parts *ret_changed, struct record_error *ret_why)
{
    struct cluster_key_parts parts = cluster_key_parse(map->cluster_name, event->key);
    err e = ERR_OK;

    if (ret_changed != NULL)
        *ret_changed = (struct cluster_key_parts){ .kind = CLUSTER_KEY_UNKNOWN };
    if (event->mod_revision <= revision_held(map, &parts, event->key))
        return ERR_OK;
    switch (parts.kind) {
    case CLUSTER_KEY_CLUSTER:
        e = apply_cluster(map, event, ret_why);
        break;
    case CLUSTER_KEY_SHARD:
        e = apply_shard(map, parts.shard, event, ret_why);
        break;
    case CLUSTER_KEY_NODE:
        e = apply_node(map, parts.replica_id, event, ret_why);
        break;
    case CLUSTER_KEY_ELECTION:
        e = apply_candidate(map, event, ret_why);
        break;
    default:
        return ERR_OK;
    }
    if (e != ERR_OK)
        return e;
    if (ret_changed != NULL)
        *ret_changed = parts;
    return ERR_OK;
}

const struct cluster_record *shard_map_cluster(const struct shard_map *map)
{
    return map->cluster_revision != 0 ? &map->cluster : NULL;
}

uint32_t shard_map_shard_count(const struct shard_map *map)
{
    return map->cluster_revision != 0 ? map->cluster.shard_count : 0;
}

bool shard_map_complete(const struct shard_map *map)
{
    return map->cluster_revision != 0 && map->shards_present == map->cluster.shard_count;
}

const struct shard_entry *shard_map_find(const struct shard_map *map, uint32_t shard)
{
    if (shard >= CLUSTER_SHARDS_MAX || map->shards[shard].mod_revision == 0)
        return NULL;
    return &map->shards[shard];
}

bool shard_map_find_shard_of(const struct shard_map *map, struct slice entity_id,
                             uint32_t *ret_shard)
{
    if (map->cluster_revision == 0)
        return false;
    *ret_shard = shard_of_entity(entity_id, map->cluster.shard_count);
    return true;
}

const struct node_record *shard_map_find_node(const struct shard_map *map, uint64_t replica_id)
{
    bool found;
    uint32_t at = node_position(map, replica_id, &found);

    return found ? &map->nodes[at] : NULL;
}

const struct node_record *shard_map_nodes(const struct shard_map *map, uint32_t *ret_count)
{
    *ret_count = map->node_count;
    return map->nodes;
}

uint32_t shard_map_doubts(const struct shard_map *map)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < map->node_count; i++) {
        uint64_t doubts = map->nodes[i].doubts;

        count += doubts != 0 && doubts >= map->cluster.generation;
    }
    return count;
}

const struct coordinator_record *shard_map_find_coordinator(const struct shard_map *map)
{
    const struct candidate *best = NULL;

    for (uint32_t i = 0; i < map->candidate_count; i++) {
        if (best == NULL || map->candidates[i].create_revision < best->create_revision)
            best = &map->candidates[i];
    }
    return best != NULL ? &best->record : NULL;
}
