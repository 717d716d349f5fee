/*
 * top_repair: rows of totals that cannot be read, made again: a total of its shares, a place of its
 * total, a note of its partial. A share is dropped, and its source pulled again from its beginning:
 * an item is a whole partial, so that counts nothing twice.
 */
#ifndef NODE_CORE_REPAIR_TOP_REPAIR_H
#define NODE_CORE_REPAIR_TOP_REPAIR_H

#include "node/core/repair/edge_repair.h"
#include "node/core/top/top.h"

#define TOP_REPAIR_VERSION TOP_APPLY_VERSION

/* A row of TABLE_CHANGED, _EMPTIED, _NEWEST, _PULLED, _SHARE, _TALLY or _RANK. ERR_NEED. */
NODISCARD err top_repair(struct apply_context *context, struct slice key,
                         struct edge_repair *ret_repair);

#endif
