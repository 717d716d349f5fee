/*
 * registry: this node's side of etcd: its leased record, and a live copy of the cluster's records.
 * A lost lease is replaced by a new one; an unreachable etcd changes nothing by itself: owners
 * go on as long as their replicas accept them. DESIGN sections 2 and 4.
 */
#ifndef NODE_IO_CLUSTER_REGISTRY_H
#define NODE_IO_CLUSTER_REGISTRY_H

#include "node/core/replication/rep.h"
#include "runtime/cluster/shard_map.h"
#include "runtime/etcd/etcd.h"
#include "runtime/loop/loop.h"

struct registry;

struct registry_options {
    struct loop *loop;
    const struct log *log;
    const char *cluster;
    const char *const *endpoints;
    uint32_t endpoint_count;
    const char *ca_file, *cert_file, *key_file;
    uint64_t lease_ttl_ms;
    /* Of etcd, from an earlier life; 0: nothing is known. If etcd is behind it, or another one, it
     * was restored from a backup: no record is followed, and ours says that we doubt it, until
     * somebody accepts the restore by raising the generation (docs/etcd-restore.md). */
    uint64_t etcd_cluster_id_known, etcd_revision_known;
    uint64_t generation_known;
    /* Each is called on the loop's thread; records are borrowed. */
    void (*cluster_known)(void *user, const struct cluster_record *record);
    void (*node_changed)(void *user, const struct node_record *record);
    void (*shard_changed)(void *user, uint32_t shard, const struct rep_record *record);
    void (*registered)(void *user, bool held);
    void *user;
};

/* Begins to follow the cluster's records. ERR_INVALID: endpoints or files. */
NODISCARD err registry_new(const struct registry_options *options, struct registry **ret_registry);
/* Gives the lease back, so that the cluster sees at once that this node stops; runs the loop until
 * etcd has heard it, or a second has passed. The copy of the records stays. NULL is allowed. */
void registry_withdraw(struct registry *registry);
/* NULL is allowed. */
void registry_free(struct registry *registry);
/* Puts this node's record under a lease, and keeps it there. Once. */
void registry_announce(struct registry *registry, const struct node_record *record);
/* What it says changed: it is put again, under the same lease. */
void registry_update(struct registry *registry, const struct node_record *record);
/* Tells shard_changed about every shard again, as when the worker has just been made. */
void registry_replay(struct registry *registry);

/* The cluster's highest that was seen, in this life or before. */
uint64_t registry_generation(const struct registry *registry);
const struct shard_map *registry_map(const struct registry *registry);
bool registry_is_registered(const struct registry *registry);
const struct etcd *registry_etcd(const struct registry *registry);
/* For others that follow what is in it; they stop before registry_free. */
struct etcd *registry_etcd_use(struct registry *registry);

#endif
