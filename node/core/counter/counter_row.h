/*
 * counter_row: the rows of counters. What a player added to a target stands twice: with the player
 * and with the target, so that one can be made again of the other. Their keys are those of edges
 * (favorite_row.h), under the counter's number. Values that are no such row are ERR_CORRUPT.
 */
#ifndef NODE_CORE_COUNTER_COUNTER_ROW_H
#define NODE_CORE_COUNTER_COUNTER_ROW_H

#include "node/core/favorite/favorite_row.h"
#include "node/core/favorite/hours.h"

#define ADDED_DAMAGE "what a player added to a target cannot be read"
#define ADDER_DAMAGE "who added to a target cannot be read"

/* TABLE_ADDED and TABLE_ADDER. `value` 0: there is no row. */
struct added_row {
    int64_t value;  /* In all. */
    uint64_t at_ms; /* When the player added last. */
    /* How much of it in which hour, of the last seven days before `at_ms`. Under an apply version
     * before ERASURE_APPLY_VERSION (erasure_row.h) none is kept. */
    struct hours hours;
};
void added_row_encode(const struct added_row *row, struct buf *out);
NODISCARD err added_row_decode(struct slice value, struct added_row *ret_row);

/* What the player of `key` added to its target in the counter that is its collection. All zero if
 * there is none. ERR_NEED; ERR_CORRUPT. */
NODISCARD err added_find(struct state *state, const struct favorite_key *key, struct need *need,
                         struct added_row *ret_row);
/* The same, as it stands with the target. */
NODISCARD err adder_find(struct state *state, const struct favorite_key *key, struct need *need,
                         struct added_row *ret_row);

#endif
