/* node_status: the answer to NodeService.GetNodeStatus, from what this node knows. */
#ifndef NODE_IO_REPORT_NODE_STATUS_H
#define NODE_IO_REPORT_NODE_STATUS_H

#include "node/io/cluster/pulls.h"
#include "node/io/disk/space.h"
#include "node/io/view/shard_view.h"
#include "runtime/cluster/cluster_record.h"

/* Whom to ask; NULL while the node starts, but for `self`. All borrowed. */
struct node_status_sources {
    const struct node_record *self;
    struct shard_views *views;
    const struct space *space;
    uint64_t disk_free_min_bytes;
    uint64_t certificate_expires_ms; /* Since 1970; 0: it has none. */
    bool live;                       /* Its lease is. */
    uint64_t generation;             /* The cluster's highest that was seen. */
    const struct pulls *pulls;
};

struct node_status_wanted {
    bool shards; /* How every shard is. */
    bool known;  /* What every replica knows of its shard's records. */
};

/* Appends a GetNodeStatusResponse. */
void node_status_append(const struct node_status_sources *sources,
                        const struct node_status_wanted *wanted, struct buf *out);
/* Of this process; 0: unknown. */
uint64_t node_resident_bytes(void);

/* Writes into a node's record which of its replicas are damaged or quarantined just now. */
void node_status_mark_unfit(struct shard_views *views, struct node_record *record);

#endif
