#include "node/store/log_kept.h"

#include <stdlib.h>

#include "runtime/base/check.h"

static void drop_last(struct log_kept *kept)
{
    struct entry *entry = kept->entries[--kept->count];

    if (entry != NULL)
        entry_unref(entry);
}

void log_kept_deinit(struct log_kept *kept)
{
    while (kept->count > 0)
        drop_last(kept);
    free(kept->entries);
    *kept = (struct log_kept){ 0 };
}

void log_kept_put(struct log_kept *kept, struct entry *entry)
{
    if (kept->count > 0 && entry->index != kept->first + kept->count)
        log_kept_truncate(kept, 0);
    if (kept->count == 0)
        kept->first = entry->index;
    if (kept->count == kept->capacity) {
        kept->capacity = kept->capacity == 0 ? 64 : kept->capacity * 2;
        kept->entries = mem_realloc(kept->entries, kept->capacity * sizeof(struct entry *));
    }
    kept->entries[kept->count++] = entry;
}

void log_kept_truncate(struct log_kept *kept, uint64_t keep)
{
    while (kept->count > 0 && kept->first + kept->count - 1 > keep)
        drop_last(kept);
}

struct entry *log_kept_take(struct log_kept *kept, uint64_t index)
{
    struct entry *entry;

    if (index < kept->first || index >= kept->first + kept->count)
        return NULL;
    entry = kept->entries[index - kept->first];
    kept->entries[index - kept->first] = NULL;
    return entry;
}
