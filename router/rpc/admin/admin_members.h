/*
 * admin_members: what operators ask of nodes and shards. Reads the wishes that stand, holds the
 * request against them and the map (router/core/member_plan.h), and writes wishes that have not
 * changed since. The coordinator carries them out, whatever becomes of this call. Shared by
 * admin_move_shard.c, admin_rebuild_replica.c, admin_rebalance_shards.c and admin_change_node.c.
 */
#ifndef ROUTER_RPC_ADMIN_ADMIN_MEMBERS_H
#define ROUTER_RPC_ADMIN_ADMIN_MEMBERS_H

#include "holdfast/v1/admin.pb-c.h"
#include "router/core/member_plan.h"
#include "router/rpc/request/handlers.h"
#include "runtime/cluster/cluster_key.h"

struct wish_write {
    struct slice key;
    struct slice value; /* Empty: the wish is taken back. */
    int64_t revision;   /* That it has now; 0: there is none. */
};

struct change {
    struct request *request;
    /* Fills writes and response, or detail. */
    err (*plan)(struct change *change, const struct member_plan *plan);
    struct member_wishes *wishes;
    struct wish_write *writes;
    uint32_t write_count;
    uint32_t written; /* Of them, so far; `open` more are on their way. */
    uint32_t open;
    ProtobufCMessage *response;
    Holdfast__V1__ErrorDetail detail;
    struct etcd_call *call; /* In flight; NULL: none. */
};

/* Reads the wishes, calls `plan`, writes and answers. `plan` fills writes and response, or detail
 * and returns an error. */
void change_start(struct request *request,
                  err (*plan)(struct change *change, const struct member_plan *plan));
/* Copies in the request's arena; the second frees `value`. */
struct slice change_keep(struct change *change, struct cluster_key key);
struct slice change_keep_value(struct change *change, struct buf *value);
/* Adds the wish of a move to the writes, which have room; nothing unless `write`. */
void change_add_move(struct change *change, const struct member_move *move, bool write);
Holdfast__V1__ShardMove *change_tell_move(struct change *change, const struct member_move *move);

#endif
