/*
 * favorite_repair: rows of edges that cannot be read, made again of the others: an edge of who
 * favorited its target, and the other way round; lists of edges; counts of what is counted.
 */
#ifndef NODE_CORE_REPAIR_FAVORITE_REPAIR_H
#define NODE_CORE_REPAIR_FAVORITE_REPAIR_H

#include "node/core/favorite/favorite.h"
#include "node/core/repair/edge_repair.h"

#define FAVORITE_REPAIR_VERSION FAVORITE_APPLY_VERSION

/* A row of TABLE_FAVORITE, _FAVORITES, _FAVORED, _FAVORER, _PARTIAL or _REVIEW. ERR_NEED. */
NODISCARD err favorite_repair(struct apply_context *context, struct slice key,
                              struct edge_repair *ret_repair);

#endif
