/*
 * state_run: new rows of ledger, histories, items, mail and events, most of which are not read
 * before they are written, as a run of bytes per table: no place in the table of rows, no list, no
 * eviction. A checkpoint freezes the run, writes it, and frees it whole. When somebody does look at
 * such a row, or ranges over them, all of the run become rows like any other first (state_unpack).
 * For state*.c alone.
 */
#ifndef NODE_CORE_ROWS_STATE_RUN_H
#define NODE_CORE_ROWS_STATE_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "node/core/rows/blob.h"

struct run_chunk;

struct run_record {
    uint32_t size_bytes; /* With this head. */
    uint16_t key_size;
    uint16_t unused;
    _Alignas(struct blob) uint8_t bytes[]; /* The value, a struct blob; then the key. */
};

/* Records in the order they were added. A zeroed one is valid and empty. */
struct run {
    struct run_chunk *first, *last;
    uint32_t count;
    uint64_t bytes; /* Of the records. */
};

struct run_record *run_add(struct run *run, struct slice key, struct slice value);
/* The newest record, which is `record`. */
void run_remove(struct run *run, const struct run_record *record);
/* `later`, which is empty afterwards, behind `run`. */
void run_join(struct run *run, struct run *later);
void run_clear(struct run *run);
struct blob *run_value(struct run_record *record);
struct slice run_key(const struct run_record *record);

struct run_cursor {
    const struct run_chunk *chunk;
    uint32_t offset;
};
/* From a zeroed cursor on; NULL after the last. */
struct run_record *run_next(const struct run *run, struct run_cursor *cursor);

#endif
