/*
 * fake_cluster: for tests: a shard map of the test's making, and nodes that answer when the test
 * says so. Calls are kept in order of arrival.
 */
#ifndef ROUTER_RPC_FAKE_FAKE_CLUSTER_H
#define ROUTER_RPC_FAKE_FAKE_CLUSTER_H

#include "router/rpc/call/node_port.h"
#include "runtime/cluster/shard_map.h"
#include "runtime/cluster/wire.h"

#define FAKE_CALLS_MAX 2048u
#define FAKE_NODES_MAX 8u

struct fake_call {
    uint64_t node;
    uint64_t handle;
    uint16_t method;
    uint8_t priority;
    uint16_t asker;
    uint32_t deadline_ms;
    struct slice body; /* The fake's own copy. */
    bool open;         /* Neither answered nor cancelled. */
    bool cancelled;
    call_done *done;
    void *user;
};

struct fake_cluster {
    struct shard_map *map;
    int64_t revision;
    bool down[FAKE_NODES_MAX];  /* By replica id: no link to it is ready. */
    bool older[FAKE_NODES_MAX]; /* Likewise: it takes no names of callers. */
    struct fake_call calls[FAKE_CALLS_MAX];
    uint32_t call_count;
};

/* Three nodes, 1 to 3; every shard is owned by node 1 in epoch 1. */
void fake_cluster_init(struct fake_cluster *fake, uint32_t shard_count);
void fake_cluster_deinit(struct fake_cluster *fake);
/* Writes the shard's record into the map; telling the caller is the test's. */
void fake_cluster_set_owner(struct fake_cluster *fake, uint32_t shard, uint64_t owner,
                            uint64_t epoch);
/* Calls to NODE_PORT_COORDINATOR come, too. */
void fake_cluster_elect(struct fake_cluster *fake);
struct node_port fake_cluster_port(struct fake_cluster *fake);
/* Ends an open call (CHECK) with a response. */
void fake_cluster_answer(struct fake_cluster *fake, uint32_t place, uint16_t status,
                         struct slice body);
/* Ends an open call (CHECK) without one. */
void fake_cluster_fail(struct fake_cluster *fake, uint32_t place, err result);

#endif
