/* item_uids: a request's list of items, by their UIDs. What happens to them:
 * node/core/goods/goods.h. */
#ifndef NODE_RPC_ITEM_UIDS_H
#define NODE_RPC_ITEM_UIDS_H

#include "node/core/handler/handler.h"

/* At most 64 well-formed UIDs, each once. ERR_INVALID. */
NODISCARD err item_uids_check(struct check_context *context, size_t count, char *const *uids);
/* The same of what stands in a log. */
bool item_uids_are_sound(size_t count, char *const *uids);
/* Their rows. The UIDs have been checked. */
void item_uids_footprint(const struct op *op, size_t count, char *const *uids, struct need *keys);

#endif
