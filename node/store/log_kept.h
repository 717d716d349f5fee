/*
 * log_kept: entries of one shard that the scan has read and recovery will want, so that a start
 * reads the log once. A cache: what is not here is read from the disk. Not thread-safe.
 */
#ifndef NODE_STORE_LOG_KEPT_H
#define NODE_STORE_LOG_KEPT_H

#include "node/core/entry/entry.h"

/* A run of indexes without gaps. A zeroed one is valid and empty. */
struct log_kept {
    struct entry **entries; /* NULL: was taken out. */
    uint32_t count;
    uint32_t capacity;
    uint64_t first; /* Index of entries[0]. */
};

void log_kept_deinit(struct log_kept *kept);
/* Takes over the reference. A gap begins a new run. */
void log_kept_put(struct log_kept *kept, struct entry *entry);
/* Drops entries above `keep`. */
void log_kept_truncate(struct log_kept *kept, uint64_t keep);
/* The entry, with its reference; NULL when it is not here (any more). */
struct entry *log_kept_take(struct log_kept *kept, uint64_t index);

#endif
