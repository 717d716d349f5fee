/*
 * member_plan: what an operator may ask of nodes and of a shard's replicas, and why not
 * (docs/membership.md). Nodes and shards come from the router's map, wishes from etcd as they
 * stand; what is allowed becomes a wish, which the coordinator carries out and checks once more.
 * Pure.
 *
 * Each returns ERR_OK, or ERR_INVALID (the request makes no sense) or ERR_CONFLICT (not as things
 * stand) with *ret_detail, which says why.
 */
#ifndef ROUTER_CORE_MEMBER_PLAN_H
#define ROUTER_CORE_MEMBER_PLAN_H

#include "holdfast/v1/error.pb-c.h"
#include "runtime/base/arena.h"
#include "runtime/cluster/shard_map.h"

struct member_wish {
    uint64_t replica_id;
    struct node_wish wish;
    int64_t mod_revision;
};

/* Zeroed: there are none. */
struct member_wishes {
    struct member_wish nodes[CLUSTER_NODES_MAX];
    uint32_t node_count;
    bool shards[CLUSTER_SHARDS_MAX]; /* Who is to hold it is wished already. */
    uint64_t
        repairs[CLUSTER_SHARDS_MAX]; /* ... whose replica is to leave and come back; 0: a move. */
};

struct member_plan {
    const struct shard_map *map;
    const struct member_wishes *wishes;
    struct arena *arena;
    Holdfast__V1__ErrorDetail *ret_detail;
};

/* One key under cluster_key_wishes_prefix. What cannot be read is left out: the coordinator says
 * so. */
void member_wishes_take(struct member_wishes *wishes, const char *cluster, struct slice key,
                        struct slice value, int64_t mod_revision);
/* NULL: nothing is wished of it. */
const struct member_wish *member_wishes_find(const struct member_wishes *wishes,
                                             uint64_t replica_id);

/* A live node's name, or the replica id of any that holds a shard, lives, or is wished of. */
NODISCARD err member_plan_node(const struct member_plan *plan, const char *field, const char *text,
                               uint64_t *ret_replica_id);
/* As the records stand. */
void member_plan_count(const struct member_plan *plan, uint64_t replica_id, uint32_t *ret_owned,
                       uint32_t *ret_held);
NODISCARD err member_plan_drain(const struct member_plan *plan, uint64_t replica_id);
NODISCARD err member_plan_undrain(const struct member_plan *plan, uint64_t replica_id);
NODISCARD err member_plan_remove(const struct member_plan *plan, uint64_t replica_id);
NODISCARD err member_plan_move(const struct member_plan *plan, uint32_t shard, uint64_t from,
                               uint64_t to, struct shard_wish *ret_wish);

/*
 * That a quarantined replica leaves its shard and comes back (docs/membership.md). *ret_state:
 * REBUILD_ASKED, and *ret_wish is to be written; else nothing is.
 */
enum rebuild_state { REBUILD_ASKED, REBUILD_UNDER_WAY, REBUILD_HEALTHY };
NODISCARD err member_plan_rebuild(const struct member_plan *plan, uint32_t shard,
                                  uint64_t replica_id, struct shard_wish *ret_wish,
                                  enum rebuild_state *ret_state);

struct member_move {
    uint32_t shard;
    struct shard_wish wish;
};

/*
 * As few moves as spread the replicas evenly: at the end no move would bring two nodes nearer to
 * each other, and none would separate replicas that share a zone. *ret_moves lives in the arena.
 */
NODISCARD err member_plan_rebalance(const struct member_plan *plan, struct member_move **ret_moves,
                                    uint32_t *ret_count);

#endif
