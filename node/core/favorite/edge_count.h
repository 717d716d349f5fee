/*
 * edge_count: takes an edge that stands out of what its target is counted to have, and puts it
 * back: the row with its target, the shard's partial count, and the hour in which it was made. The
 * edge's own rows stay. An edge counts exactly while it stands with its target (TABLE_FAVORER).
 */
#ifndef NODE_CORE_FAVORITE_EDGE_COUNT_H
#define NODE_CORE_FAVORITE_EDGE_COUNT_H

#include "node/core/favorite/partial.h"

/* Each of these: `edge` was made at edge->at_ms. Nothing is done about one that does not count, or
 * that counts, already. A partial that cannot be read is left to its repair, which counts again.
 * ERR_NEED. */
NODISCARD err edge_count_out(struct apply_context *context, const struct favorite_key *edge);
NODISCARD err edge_count_in(struct apply_context *context, const struct favorite_key *edge);

#endif
