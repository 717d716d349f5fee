/*
 * pull: the source's side of totals: which partial counts changed, for the homes that ask.
 * Everything up to the dot that a home names is left out; what changed more than once is told once,
 * as it stands.
 */
#ifndef NODE_CORE_TOP_PULL_H
#define NODE_CORE_TOP_PULL_H

#include "node/core/top/pull_item.h"

/* Appends a part for each home of `homes` that there is room for. ERR_NEED: rows are noted, `out`
 * is as it was. ERR_INVALID: the homes make no sense. What cannot be read is left out and told. */
NODISCARD err pull_read(struct read_context *context, struct slice homes, struct buf *out);

#endif
