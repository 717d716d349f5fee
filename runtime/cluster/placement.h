/*
 * placement: which shard an entity belongs to, which nodes should hold a shard, and which of
 * them should own it (DESIGN section 3). It proposes; the record in etcd decides. Pure and
 * deterministic: the same nodes give the same answer in every process, in whatever order they
 * are listed.
 */
#ifndef RUNTIME_CLUSTER_PLACEMENT_H
#define RUNTIME_CLUSTER_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"
#include "runtime/cluster/cluster_record.h"

/* The top log2(shard_count) bits of XXH3-64 of the entity id. Top bits, so that shard n of S
 * is exactly shards 2n and 2n+1 of 2S. shard_count must be valid (CHECK). */
uint32_t shard_of_entity(struct slice entity_id, uint32_t shard_count);
/* The same of "target:<id>": where what the game says of a target is kept. An id of at most
 * TARGET_BYTES_MAX (CHECK). */
#define TARGET_ENTITY    "target:"
#define TARGET_BYTES_MAX 128u
uint32_t shard_of_target(struct slice target_id, uint32_t shard_count);

struct placement_node {
    uint64_t replica_id; /* Not 0, each once. */
    const char *zone;    /* Borrowed; not NULL, may be "". */
    bool closed;         /* placement_next: its zone counts, but it may not join. */
};

/*
 * The replicas for one shard, by rendezvous hashing (Thaler and Ravishankar 1998) over
 * (shard, replica id): the heaviest node of the least used zone, again and again. A node that
 * joins or leaves moves only the replicas that it gains or loses, as far as the spread over zones
 * allows. Returns how many were chosen: the smaller of replication_factor and node_count.
 * node_count <= CLUSTER_NODES_MAX, replication_factor <= CLUSTER_MEMBERS_MAX (CHECK).
 */
uint32_t placement_members(uint32_t shard, const struct placement_node *nodes, uint32_t node_count,
                           uint32_t replication_factor, uint64_t ret_members[CLUSTER_MEMBERS_MAX]);

/*
 * Who should join `kept` (kept_count of them): the heaviest node of the zone that they use least,
 * as placement_members would choose next. `nodes` are those who may join, and those of `kept` that
 * are known, so that their zones count. 0: none may.
 */
uint64_t placement_next(uint32_t shard, const struct placement_node *nodes, uint32_t node_count,
                        const uint64_t *kept, uint32_t kept_count);

/* One shard as placement_balance sees it. */
struct placement_shard {
    uint32_t member_count;
    uint64_t members[CLUSTER_MEMBERS_MAX];
    uint64_t owner; /* In: now, 0 for none. Out: proposed; 0 when no member may own it. */
};

/*
 * Proposes owners among each shard's members so that no node among `owners` owns more than it
 * must: it ends when no chain of moves can take a shard from a node to another with two fewer.
 * Where every member is allowed this means loads that differ by at most one. Owners that can stay
 * do, and the chains are the shortest ones. `owners` are the nodes that may own shards (live, not
 * draining). Returns how many owners changed. Index i of `shards` is shard i.
 */
uint32_t placement_balance(struct placement_shard *shards, uint32_t shard_count,
                           const uint64_t *owners, uint32_t owner_count);

#endif
