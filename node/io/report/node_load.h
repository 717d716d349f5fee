/* node_load: the answer to NodeService.GetNodeLoad: what this node does, in counters. */
#ifndef NODE_IO_REPORT_NODE_LOAD_H
#define NODE_IO_REPORT_NODE_LOAD_H

#include "node/io/report/node_metrics.h"

/* Each may be NULL while the node starts. */
struct node_load_sources {
    uint64_t replica_id;
    uint64_t life; /* Of this process. */
    const struct node_metrics *metrics;
    struct shard_views *views;
    struct node_log *store_log;
    const struct space *space;
};

/* Appends a GetNodeLoadResponse. */
void node_load_append(const struct node_load_sources *sources, struct buf *out);

#endif
