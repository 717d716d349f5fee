/*
 * recount: counts of targets computed again from what they count, and totals with their places in
 * the top lists from what the shards said (docs/rebuild.md). A step looks at a bounded number of
 * rows of a shard, in the order of targets, and says where the next one goes on. At apply the place
 * stands in the shard's row (recount_row.h), and what differs is stored as it was computed. A read
 * compares alone, and takes its place from the caller.
 */
#ifndef NODE_CORE_REPAIR_RECOUNT_H
#define NODE_CORE_REPAIR_RECOUNT_H

#include "node/core/repair/recount_page.h"

/* ERR_NEED: rows are noted, and nothing may be kept. ERR_CORRUPT: nor after keys that cannot be
 * read, as many as a step looks at, one after the other. */
NODISCARD err recount_step(struct recount *recount);

#endif
