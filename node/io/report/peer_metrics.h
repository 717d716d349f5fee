/*
 * peer_metrics: how far each other node follows the shards served here, two series a node. A link
 * that is up says nothing about that: only what the other side acknowledged does.
 *
 * Nodes come from etcd, at most PEERS_MAX of them in one life of this process; the ones beyond have
 * no series. The label `peer` is the name under which a node was first seen.
 */
#ifndef NODE_IO_REPORT_PEER_METRICS_H
#define NODE_IO_REPORT_PEER_METRICS_H

#include "node/io/view/shard_view.h"
#include "runtime/cluster/shard_map.h"
#include "runtime/metrics/metrics.h"

struct peer_metrics;

/* All are borrowed; views and map until clear. */
struct peer_metrics *peer_metrics_new(struct metrics *metrics, struct shard_views *views,
                                      const struct shard_map *map);
/* Registers another node's series, once. On the loop's thread, as all here. */
void peer_metrics_know(struct peer_metrics *metrics, const struct node_record *record);
/* From here on they read zero. NULL is allowed. */
void peer_metrics_clear(struct peer_metrics *metrics);
/* After the registry's last scrape. NULL is allowed. */
void peer_metrics_free(struct peer_metrics *metrics);

#endif
