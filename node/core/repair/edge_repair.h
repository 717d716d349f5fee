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

#define REPAIR_ROWS_MAX 64u /* Rows of one RepairPlayer. */

/* What a repair counts is loaded at once and counted within one entry: no more rows of one target
 * or of one player than this, as far as the version of apply bounds them. */
#define REPAIR_BOUNDED_APPLY_VERSION 10u
#define REPAIR_TARGET_ROWS_MAX       4096u
#define REPAIR_PLAYER_ROWS_MAX       16384u
static inline uint32_t repair_rows_max(const struct apply_context *context, uint32_t rows_max)
{
    return context->version >= REPAIR_BOUNDED_APPLY_VERSION ? rows_max : UINT32_MAX - 1;
}

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
