#include "runtime/etcd/mirror_index.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

void mirror_index_deinit(struct mirror_index *index)
{
    for (size_t i = 0; i < index->count; i++)
        free(index->entries[i].key);
    free(index->entries);
    *index = (struct mirror_index){ 0 };
}

/* Where the key is, or where it would go. */
static size_t position(const struct mirror_index *index, struct slice key, bool *ret_found)
{
    size_t low = 0;
    size_t high = index->count;

    *ret_found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct mirror_entry *entry = &index->entries[middle];
        int order = slice_compare((struct slice){ entry->key, entry->key_size }, key);
        if (order == 0) {
            *ret_found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct mirror_entry *mirror_index_find(struct mirror_index *index, struct slice key)
{
    bool found;
    size_t at = position(index, key, &found);

    return found ? &index->entries[at] : NULL;
}

struct mirror_entry *mirror_index_get(struct mirror_index *index, struct slice key)
{
    bool found;
    size_t at = position(index, key, &found);

    if (found)
        return &index->entries[at];
    if (index->count == index->capacity) {
        index->capacity = index->capacity > 0 ? index->capacity * 2 : 16;
        index->entries = mem_realloc(index->entries, index->capacity * sizeof index->entries[0]);
    }
    struct mirror_entry *entry = &index->entries[at];
    memmove(entry + 1, entry, (index->count - at) * sizeof *entry);
    index->count++;
    *entry = (struct mirror_entry){ .key = mem_alloc(key.size + 1), .key_size = key.size };
    memcpy(entry->key, key.data, key.size);
    return entry;
}

void mirror_index_remove(struct mirror_index *index, size_t at)
{
    CHECK(at < index->count);
    free(index->entries[at].key);
    index->count--;
    memmove(&index->entries[at], &index->entries[at + 1],
            (index->count - at) * sizeof index->entries[0]);
}
