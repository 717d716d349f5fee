/* share: a player's share of its shard's room for outcomes, said again from the operations that
 * left one. */
#ifndef TESTS_SIM_FAVORITES_SHARE_H
#define TESTS_SIM_FAVORITES_SHARE_H

#include "tests/sim/favorites/favorite_model.h"

/* The entry leaves an outcome of a call that a player may make itself: there must have been room.
 */
void share_used(const struct change *c, const struct op_model *op);
/* Whether the entry is refused for want of room; there must be none, and the caller is told until
 * when. */
bool share_refused(const struct change *c, const struct op_model *op);

#endif
