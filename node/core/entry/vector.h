/*
 * vector: a shard's version vector, {epoch -> highest counter}. Since START pins its base,
 * v1 <= v2 means log 1 is a prefix of log 2, and incomparable vectors mean a fork. The index of
 * the last entry equals the sum of the counters. DESIGN section 4.
 *
 * Old epochs, all of whose entries are committed everywhere, are folded into `folded_index`, so
 * a vector stays within VECTOR_EPOCHS_MAX however many owners a shard has had.
 */
#ifndef NODE_CORE_ENTRY_VECTOR_H
#define NODE_CORE_ENTRY_VECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"

#define VECTOR_EPOCHS_MAX 32u

struct vector_item {
    uint64_t epoch;
    uint64_t owner;
    uint64_t counter;
};

struct vector {
    uint64_t folded_epoch; /* Epochs at or below this one are folded; 0 when none is. */
    uint64_t folded_index; /* Entries in them. */
    uint32_t count;
    struct vector_item items[VECTOR_EPOCHS_MAX]; /* Ascending epochs. */
};

enum vector_order { VECTOR_EQUAL, VECTOR_BEFORE, VECTOR_AFTER, VECTOR_FORK };

enum vector_order vector_compare(const struct vector *a, const struct vector *b);
uint64_t vector_index(const struct vector *v);
/* Index of the last entry that logs with these vectors share: up to the greatest epoch in both.
 * Never too great; too small when one side has folded the last epoch they share, so callers take
 * the greater of it and what they know to be committed on both. */
uint64_t vector_common_index(const struct vector *a, const struct vector *b);
/* Adds one entry of an epoch; epochs only rise. Folds the oldest when full. */
void vector_append(struct vector *v, uint64_t epoch, uint64_t owner);
/* Drops entries above `index`. index >= folded_index. */
void vector_truncate(struct vector *v, uint64_t index);
void vector_encode(const struct vector *v, struct buf *out);
/* ERR_CORRUPT: malformed; *ret_vector untouched. */
NODISCARD err vector_decode(struct reader *reader, struct vector *ret_vector);

#endif
