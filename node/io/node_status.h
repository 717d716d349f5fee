/* node_status: the answer to NodeService.GetNodeStatus, from what this node knows. */
#ifndef NODE_IO_NODE_STATUS_H
#define NODE_IO_NODE_STATUS_H

#include "node/io/worker.h"
#include "runtime/cluster/cluster_record.h"

/* Appends a GetNodeStatusResponse. `worker` may be NULL while the node starts. */
void node_status_append(const struct worker *worker, const struct node_record *self, bool live,
                        bool with_shards, struct buf *out);

#endif
