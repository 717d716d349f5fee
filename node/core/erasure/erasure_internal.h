/* erasure_internal: what the files of this room share. */
#ifndef NODE_CORE_ERASURE_ERASURE_INTERNAL_H
#define NODE_CORE_ERASURE_ERASURE_INTERNAL_H

#include "node/core/favorite/erasure_row.h"

/* The row as it is changed, its cursor in the arena; its timer, which stood at `due_before_ms`,
 * follows it. */
void erasure_store(struct apply_context *context, const struct erasure_row *row,
                   uint64_t due_before_ms);
/* The row with its cursor in the arena. ERR_NEED; ERR_CONFLICT: it cannot be read. */
NODISCARD err erasure_load(struct apply_context *context, struct erasure_row *ret_row);
/* The state changes: its walk begins at the first row, and is due now. */
void erasure_enter(struct apply_context *context, struct erasure_row *row,
                   Holdfast__V1__ErasureState state);
void erasure_event(struct apply_context *context, const struct erasure_row *row);

#endif
