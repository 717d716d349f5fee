/*
 * edge_repair: what a repair of a row of edges, counters or totals comes to.
 */
#ifndef NODE_CORE_REPAIR_EDGE_REPAIR_H
#define NODE_CORE_REPAIR_EDGE_REPAIR_H

#include "node/core/handler/handler.h"

struct edge_repair {
    bool dropped;      /* Set: there is nothing that it could be of. */
    const char *wants; /* Set, and nothing was changed: what it takes. */
};

/* Before it a repair dropped what an erased player would have needed to come back. */
#define REPAIR_ERASED_APPLY_VERSION 10u
/*
 * Before a row of the operation's player is dropped since nothing stands with its target: while the
 * player's erasure can be undone nothing does, and RestorePlayer makes of the row, or of its place
 * in the list, what stood there. Sets `wants` then. ERR_NEED.
 */
NODISCARD err edge_repair_waits(struct apply_context *context, struct edge_repair *repair);

/* There is nothing that the row could be of. */
static inline err edge_repair_drop(struct apply_context *context, struct slice key,
                                   struct edge_repair *repair)
{
    state_delete(context->state, key);
    repair->dropped = true;
    return ERR_OK;
}

#endif
