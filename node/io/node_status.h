/* node_status: the answer to NodeService.GetNodeStatus, from what this node knows. */
#ifndef NODE_IO_NODE_STATUS_H
#define NODE_IO_NODE_STATUS_H

#include "node/io/shard_view.h"
#include "runtime/cluster/cluster_record.h"

/* Appends a GetNodeStatusResponse. `views` may be NULL while the node starts. */
void node_status_append(struct shard_views *views, const struct node_record *self, bool live,
                        bool with_shards, struct buf *out);
/* Of this process; 0: unknown. */
uint64_t node_resident_bytes(void);

#endif
