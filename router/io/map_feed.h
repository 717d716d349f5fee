/*
 * map_feed: keeps a shard_map as etcd has it: the cluster's record, nodes, shards and coordinators.
 * An unreachable or restored etcd changes nothing: the map stays as it was known.
 */
#ifndef ROUTER_IO_MAP_FEED_H
#define ROUTER_IO_MAP_FEED_H

#include "runtime/cluster/shard_map.h"
#include "runtime/etcd/etcd.h"
#include "runtime/base/log.h"

struct map_feed;

struct map_feed_options {
    struct etcd *etcd; /* Borrowed; outlives the feed. */
    const char *cluster;
    const struct log *log;
    void (*cluster_known)(void *user); /* Once: shard_map_cluster is there. */
    /* NULL `record`: its lease is gone. */
    void (*node_changed)(void *user, uint64_t replica_id, const struct node_record *record);
    void (*shard_changed)(void *user, uint32_t shard);
    void *user;
};

NODISCARD err map_feed_new(const struct map_feed_options *options, struct map_feed **ret_feed);
/* NULL is allowed. */
void map_feed_free(struct map_feed *feed);
const struct shard_map *map_feed_map(const struct map_feed *feed);

#endif
