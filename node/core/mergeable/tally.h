/*
 * tally: the value of one cell of a counter (counter.h).
 */
#ifndef NODE_CORE_MERGEABLE_TALLY_H
#define NODE_CORE_MERGEABLE_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"

#define MERGE_DELTA_MAX ((int64_t)1 << 47)
/* Operations that one reset may have to remember. */
#define MERGE_SPENT_MAX 4096u

#define MERGE_RANK_ACTOR 1u
#define MERGE_RANK_ERAS  2u

/* What one cell says. */
struct merge_tally {
    int64_t delta;
    uint8_t rank;       /* What is folded into it; 0: nothing. */
    struct slice spent; /* u64 each, ascending; borrowed from the cell. */
};

/* Writes the value of a cell. Appends. */
void merge_tally_encode(const struct merge_tally *tally, struct buf *out);
/* ERR_CORRUPT: malformed, over a limit or out of order; *ret_tally untouched. */
NODISCARD err merge_tally_decode(struct slice value, struct merge_tally *ret_tally);
/* The operation at that place of those that are spent. */
uint64_t merge_tally_spent(const struct merge_tally *tally, size_t at);
/* `other` is of a higher rank than `value`, both of cells under one dot: it takes its place. */
bool merge_tally_exceeds(struct slice other, struct slice value);

#endif
