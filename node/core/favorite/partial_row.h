/*
 * partial_row: what a shard keeps of a target: how many of its edges lead to it, or how much its
 * players added to it, and since which hours. Values that are no such row are ERR_CORRUPT.
 */
#ifndef NODE_CORE_FAVORITE_PARTIAL_ROW_H
#define NODE_CORE_FAVORITE_PARTIAL_ROW_H

#include "node/core/favorite/hours.h"

/* Of an entry. Along a log these rise, also where its owner changes. */
struct source_dot {
    uint64_t epoch, counter;
};
static inline bool source_dot_is_above(struct source_dot a, struct source_dot b)
{
    return a.epoch > b.epoch || (a.epoch == b.epoch && a.counter > b.counter);
}

/* TABLE_PARTIAL. Of a program before TOP_APPLY_VERSION: without a dot and hours. Since then one
 * whose count has come to 0 stays until its home has logged that: partials_forget. */
struct partial_row {
    uint64_t count;
    struct source_dot changed; /* Zero: never since TOP_APPLY_VERSION. */
    struct hours hours;
    bool found_empty; /* No part of the row: it was found, with a count of 0. */
};
void partial_row_encode(const struct partial_row *row, struct buf *out);
NODISCARD err partial_row_decode(struct slice value, struct partial_row *ret_row);

#endif
