/*
 * counter_repair: rows of counters that cannot be read, made again. What a player added to a target
 * stands with both, so each is made of the other; sums are added up of what stands with targets.
 */
#ifndef NODE_CORE_REPAIR_COUNTER_REPAIR_H
#define NODE_CORE_REPAIR_COUNTER_REPAIR_H

#include "node/core/counter/counter.h"
#include "node/core/repair/edge_repair.h"

#define COUNTER_REPAIR_VERSION COUNTER_APPLY_VERSION

/* A row of TABLE_ADDED or _ADDER. ERR_NEED. */
NODISCARD err counter_repair(struct apply_context *context, struct slice key,
                             struct edge_repair *ret_repair);

/* To how many targets a player added, by their rows, whether or not these can be read. ERR_NEED.
 * ERR_TOO_LARGE: to more than `rows_max`. */
NODISCARD err counter_count_targets(struct apply_context *context, const struct favorite_key *of,
                                    uint32_t rows_max, uint64_t *ret_count);
/* What players added to a target. ERR_NEED. ERR_TOO_LARGE: more than `rows_max` did. ERR_CORRUPT: a
 * row of these cannot be read. */
NODISCARD err counter_sum_up(struct apply_context *context, const struct favorite_key *of,
                             uint32_t rows_max, uint64_t *ret_sum);

#endif
