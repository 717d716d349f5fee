/*
 * coord: what the elected coordinator decides (DESIGN sections 2, 4, 5): creates the cluster,
 * places shards, names owners (failover, early claim, restarted owners, gentle rebalance), expires
 * game servers, carries the policy to every shard. Pure: no I/O, clock, threads, randomness. The
 * shell (coordinator/io in production, tests/sim in the simulator) feeds it etcd's records and
 * carries out its transactions and calls.
 *
 * It is a reconciler: every decision follows from the records as they stand, so a new coordinator,
 * or one that missed an answer, goes on where the last one stopped. Why an owner gets a new epoch:
 *
 *   its node record is gone            -> a live member at once, greatest reported dot first
 *   its node record is newer than the  -> the same node again, one epoch higher: it restarted (or
 *   shard record that names it            its lease lapsed) and lost what an owner holds in memory
 *   a majority without it reports it   -> the reporter with the greatest last dot (early claim)
 *   closed or silent
 *   it says that its disk is full      -> a live member that has room, if there is one
 *   it says that its clock is ahead    -> another live member, if there is one
 *   ownership is uneven                -> a live member, one shard per rebalance_period_ms
 *   owners have unevenly much to do    -> a live member, in exchange for a less busy shard (load.c)
 *   it is drained or removed           -> a live member, one shard per drain_period_ms
 *   the shard's members change         -> the same node, unless it is the one who goes (change.c)
 *
 * A replica that its own node found damaged leaves its shard and comes back empty (repair.c).
 *
 * Nothing here is trusted for safety beyond the compares of its transactions: replicas fence. But
 * for one thing: numbers of configurations must not be given twice. So before a shard's members
 * change (or are chosen) a majority of them must answer, and none may know a later record:
 * etcd may have been restored from a backup (word.c).
 */
#ifndef COORDINATOR_CORE_COORD_H
#define COORDINATOR_CORE_COORD_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/core/coord_event.h"
#include "coordinator/core/coord_limits.h"
#include "coordinator/core/coord_out.h"
#include "coordinator/core/coord_stats.h"
#include "runtime/base/log.h"
#include "runtime/cluster/cluster_record.h"

struct coord_options {
    const char *cluster;                  /* cluster_name_valid. Copied, as all here. */
    const struct coord_limits *limits;    /* NULL: the defaults. */
    const struct cluster_record *initial; /* Written if the cluster has no record. Valid. */
    struct slice initial_policy; /* Packed holdfast.v1.Policy, written with it; or empty. */
    uint32_t placement_nodes;    /* Nodes to wait for; 0: the replication factor. */
    const struct log *log;       /* Borrowed; may be NULL. */
};

struct coord;

struct coord *coord_new(const struct coord_options *options);
void coord_free(struct coord *coord);

/* Advances by one event; appends to `out`. What is wrong is logged and left alone. Carry out the
 * actions after it returns: never call it from within. */
void coord_step(struct coord *coord, const struct coord_event *event, struct coord_out *out);

/* Elected, synced, not halted: it decides. */
bool coord_is_active(const struct coord *coord);
/* etcd went back under it, or a live node says that etcd is older than it knows. */
bool coord_is_halted(const struct coord *coord);
/* Work that is under way: a transaction, call, search, change, expiry or hold. NULL: none, as after
 * each step in which coord_is_active is false. Looks at everything: for tests. */
const char *coord_work_left(const struct coord *coord);
/* Looks at everything, between steps: CHECKs that what is known and what is on its way fit
 * together. For tests and the simulator. */
void coord_check(const struct coord *coord);
/* NULL until the cluster has a record. */
const struct cluster_record *coord_cluster(const struct coord *coord);
/* NULL: no live record. Valid until the next step. */
const struct node_record *coord_find_node(const struct coord *coord, uint64_t replica_id);
/* Live nodes by rising replica id. `index` < coord_node_count. */
uint32_t coord_node_count(const struct coord *coord);
const struct node_record *coord_node(const struct coord *coord, uint32_t index);
/* NULL: no record. */
const struct shard_record *coord_find_shard(const struct coord *coord, uint32_t shard);
void coord_stats_get(const struct coord *coord, struct coord_stats *ret_stats);

#endif
