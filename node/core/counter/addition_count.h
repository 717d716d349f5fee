/*
 * addition_count: takes what a player added to a target out of the target's total, and puts it
 * back: the row with its target, the shard's part of the total, and the hours in which it was
 * added. The player's own row stays. What was added counts exactly while it stands with its target
 * (TABLE_ADDER). Of what was added under an apply version before ERASURE_APPLY_VERSION the hours
 * are not known: the oldest that are left over go, and are not brought back.
 */
#ifndef NODE_CORE_COUNTER_ADDITION_COUNT_H
#define NODE_CORE_COUNTER_ADDITION_COUNT_H

#include "node/core/counter/counter_row.h"
#include "node/core/handler/handler.h"

/* As edge_withdraw and edge_put_back (edge.h). What can be read with neither the player nor
 * the target is damage of the player. ERR_NEED. */
NODISCARD err addition_count_out(struct apply_context *context, const struct favorite_key *key);
NODISCARD err addition_count_in(struct apply_context *context, const struct favorite_key *key);

#endif
