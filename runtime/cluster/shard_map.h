/*
 * shard_map: an in-memory copy of the cluster's records, fed by etcd events (runtime/etcd's
 * mirror gives them in order): shards, nodes, the cluster record and who leads the coordinators.
 * Answers "where does this entity live" without I/O. It can be out of date: the node checks
 * ownership again, by epoch. Not thread-safe; each thread that looks up keeps its own.
 */
#ifndef RUNTIME_CLUSTER_SHARD_MAP_H
#define RUNTIME_CLUSTER_SHARD_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"
#include "runtime/cluster/cluster_record.h"

struct shard_map;

/* One key as etcd has it, borrowed for the call. */
struct shard_map_event {
    bool deleted;
    struct slice key;
    struct slice value;      /* Empty when deleted. */
    int64_t create_revision; /* 0 when deleted. */
    int64_t mod_revision;    /* Of the put, or of the delete. */
};

struct shard_map *shard_map_new(const char *cluster);
void shard_map_free(struct shard_map *map);

/*
 * Takes one event. *ret_changed (may be NULL) tells what changed; CLUSTER_KEY_UNKNOWN when
 * nothing did (an older revision of what is held, a key that does not concern it).
 * ERR_INVALID: the record is malformed; the map keeps what it had, and ret_why says why.
 */
NODISCARD err shard_map_apply(struct shard_map *map, const struct shard_map_event *event,
                              struct cluster_key_parts *ret_changed, struct record_error *ret_why);
/* Forgets everything, for use after etcd was restored: revisions start over. But for the cluster's
 * record, until it comes again: it never changes but for its generation, and callers wait for an
 * owner meanwhile instead of being refused. */
void shard_map_reset(struct shard_map *map);

/* NULL until the cluster's record is seen. */
const struct cluster_record *shard_map_cluster(const struct shard_map *map);
/* 0 until the cluster's record is seen. */
uint32_t shard_map_shard_count(const struct shard_map *map);
/* True when the cluster's record and every shard's are there. */
bool shard_map_complete(const struct shard_map *map);

struct shard_entry {
    struct shard_record record;
    int64_t mod_revision; /* Compare it in the transaction that changes the record. */
};

/* NULL when there is no such record. Valid until the next apply or reset, as all below. */
const struct shard_entry *shard_map_find(const struct shard_map *map, uint32_t shard);
/* Needs the cluster's record; false before that. */
bool shard_map_find_shard_of(const struct shard_map *map, struct slice entity_id,
                             uint32_t *ret_shard);
/* NULL when the node has no live record. */
const struct node_record *shard_map_find_node(const struct shard_map *map, uint64_t replica_id);
/* Live nodes by rising replica id; *ret_count of them. */
const struct node_record *shard_map_nodes(const struct shard_map *map, uint32_t *ret_count);
/* Live nodes that know a newer etcd than this one, which was restored from a backup and
 * waits to be accepted (docs/etcd-restore.md). */
uint32_t shard_map_doubts(const struct shard_map *map);
/* The leading coordinator; NULL when there is none. */
const struct coordinator_record *shard_map_find_coordinator(const struct shard_map *map);

#endif
