/*
 * mirror_index: what a mirror has told its user: per key the revision, and whether it was a delete.
 * Deletes are kept only while a range is on its way, whose answer may be older than they. Pure.
 */
#ifndef RUNTIME_ETCD_MIRROR_INDEX_H
#define RUNTIME_ETCD_MIRROR_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"

struct mirror_entry {
    uint8_t *key;
    size_t key_size;
    int64_t revision;
    uint64_t round; /* Of the range that last showed it. */
    bool deleted;
};

/* Sorted by key. A zeroed one is valid and empty. */
struct mirror_index {
    struct mirror_entry *entries;
    size_t count;
    size_t capacity;
};

void mirror_index_deinit(struct mirror_index *index);
/* NULL when there is none. Valid until the next get or remove. */
struct mirror_entry *mirror_index_find(struct mirror_index *index, struct slice key);
/* Found, or made with revision 0. */
struct mirror_entry *mirror_index_get(struct mirror_index *index, struct slice key);
void mirror_index_remove(struct mirror_index *index, size_t at);

#endif
