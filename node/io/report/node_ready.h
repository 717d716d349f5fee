/*
 * node_ready: whether a node has caught up: the next one may be restarted. Each shard of which it
 * is a member must be served here, or follow its owner closely. That its log is the owner's is
 * known only once they were compared, so a node that just started is not ready, though registered.
 *
 * Not asked of: learners, which take their time and are in no majority; damaged replicas,
 * which waiting does not mend and which have an alert of their own.
 */
#ifndef NODE_IO_REPORT_NODE_READY_H
#define NODE_IO_REPORT_NODE_READY_H

#include "node/io/view/shard_view.h"

#define NODE_READY_LAG_MAX    1024u /* Committed entries that are not applied here yet. */
#define NODE_READY_TEXT_BYTES 128u

/* False: ret_reason says which shard, and why. */
bool node_ready_view(const struct shard_view *view, uint64_t self,
                     char ret_reason[NODE_READY_TEXT_BYTES]);
/* All shards: the first that is not says why, and how many are not. */
bool node_ready(struct shard_views *views, uint64_t self, char ret_reason[NODE_READY_TEXT_BYTES]);

#endif
