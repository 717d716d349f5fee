/*
 * blob: the value of a row; and what must be loaded from the database before a step can go on.
 *
 * Values are immutable and counted by reference, so a checkpoint keeps the old value of a row
 * that changes meanwhile. Another thread may read a blob it was lent; only the owning thread
 * counts references.
 */
#ifndef NODE_CORE_ROWS_BLOB_H
#define NODE_CORE_ROWS_BLOB_H

#include <stdint.h>

#include "runtime/base/buf.h"

#define STATE_KEY_BYTES_MAX   512u
#define STATE_VALUE_BYTES_MAX (1024u * 1024u)

struct blob {
    uint32_t refs;
    uint32_t size;
    uint8_t bytes[];
};

struct blob *blob_new(struct slice bytes);
struct blob *blob_ref(struct blob *blob);
void blob_unref(struct blob *blob);

/* A page of rows: those under `prefix` with keys above `after`, ascending, at most `limit`. Of
 * items and mail the prefix names the entity. */
struct state_range {
    struct slice prefix;
    struct slice after;
    uint32_t limit;
};

/* What must be loaded before apply or read can go on. Zeroed is valid. */
struct need {
    struct buf keys; /* u32 length + key, repeated. */
    uint32_t key_count;
    struct buf ranges; /* prefix (u32 + bytes), after (u32 + bytes), u32 limit; repeated. */
    uint32_t range_count;
    uint64_t load_generation; /* To be given back with the rows. */
};
void need_add_key(struct need *need, struct slice key);
void need_add_range(struct need *need, const struct state_range *range);
void need_clear(struct need *need);
void need_deinit(struct need *need);

#endif
