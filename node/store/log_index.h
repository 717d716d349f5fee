/*
 * log_index: where each entry of one shard stands in the log: a run of indexes without gaps, 12
 * bytes each. Memory only; rebuilt by the scan at start. Not thread-safe.
 */
#ifndef NODE_STORE_LOG_INDEX_H
#define NODE_STORE_LOG_INDEX_H

#include <stdint.h>

struct log_place {
    uint32_t segment; /* From 1. */
    uint32_t offset;  /* Byte in the segment where the record's header begins. */
    uint32_t bytes;   /* Of the record's payload. */
};

/* A zeroed one is valid and empty. */
struct log_index {
    struct log_place *places;
    uint32_t head;
    uint32_t count;
    uint32_t capacity;
    uint64_t first; /* Index of places[head]. */
};

void log_index_deinit(struct log_index *index);
/* `at` above the last one. A gap (a snapshot was installed) begins a new run. */
void log_index_put(struct log_index *index, uint64_t at, struct log_place place);
/* NULL when not held. Valid until the next change. */
const struct log_place *log_index_find(const struct log_index *index, uint64_t at);
/* Drops indexes up to `cut`. */
void log_index_cut(struct log_index *index, uint64_t cut);
/* Drops indexes above `keep`. */
void log_index_truncate(struct log_index *index, uint64_t keep);

#endif
