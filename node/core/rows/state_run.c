#include "node/core/rows/state_run.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

#define CHUNK_BYTES  (16u * 1024u)
#define RECORD_ALIGN 8u

struct run_chunk {
    struct run_chunk *next, *previous;
    uint32_t used, capacity;
    _Alignas(RECORD_ALIGN) uint8_t bytes[];
};

static struct run_chunk *chunk_new(uint32_t record_bytes)
{
    uint32_t room = CHUNK_BYTES - (uint32_t)sizeof(struct run_chunk);
    uint32_t capacity = record_bytes > room ? record_bytes : room;
    struct run_chunk *chunk = mem_alloc(sizeof *chunk + capacity);

    *chunk = (struct run_chunk){ .capacity = capacity };
    return chunk;
}

static void chunk_add(struct run *run, struct run_chunk *chunk)
{
    chunk->previous = run->last;
    *(run->last != NULL ? &run->last->next : &run->first) = chunk;
    run->last = chunk;
}

struct run_record *run_add(struct run *run, struct slice key, struct slice value)
{
    size_t size = sizeof(struct run_record) + sizeof(struct blob) + value.size + key.size;
    uint32_t size_bytes = (uint32_t)((size + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN);

    CHECK(key.size > 0 && key.size <= STATE_KEY_BYTES_MAX);
    CHECK(value.size <= STATE_VALUE_BYTES_MAX);
    if (run->last == NULL || run->last->capacity - run->last->used < size_bytes)
        chunk_add(run, chunk_new(size_bytes));
    struct run_record *record = (void *)(run->last->bytes + run->last->used);
    record->size_bytes = size_bytes;
    record->key_size = (uint16_t)key.size;
    record->unused = 0;
    struct blob *blob = run_value(record);
    *blob = (struct blob){ .refs = 1, .size = (uint32_t)value.size };
    if (value.size > 0)
        memcpy(blob->bytes, value.data, value.size);
    memcpy(blob->bytes + value.size, key.data, key.size);
    run->last->used += size_bytes;
    run->count++;
    run->bytes += size_bytes;
    return record;
}

void run_remove(struct run *run, const struct run_record *record)
{
    struct run_chunk *chunk = run->last;

    CHECK(chunk != NULL && run->count > 0);
    CHECK((const uint8_t *)record + record->size_bytes == chunk->bytes + chunk->used);
    chunk->used -= record->size_bytes;
    run->bytes -= record->size_bytes;
    run->count--;
    if (chunk->used > 0)
        return;
    run->last = chunk->previous;
    *(run->last != NULL ? &run->last->next : &run->first) = NULL;
    free(chunk);
}

void run_join(struct run *run, struct run *later)
{
    if (later->first == NULL)
        return;
    later->first->previous = run->last;
    *(run->last != NULL ? &run->last->next : &run->first) = later->first;
    run->last = later->last;
    run->count += later->count;
    run->bytes += later->bytes;
    *later = (struct run){ 0 };
}

void run_clear(struct run *run)
{
    for (struct run_chunk *chunk = run->first; chunk != NULL;) {
        struct run_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
    *run = (struct run){ 0 };
}

struct blob *run_value(struct run_record *record)
{
    return (void *)record->bytes;
}

struct slice run_key(const struct run_record *record)
{
    const struct blob *value = (const void *)record->bytes;

    return (struct slice){ value->bytes + value->size, record->key_size };
}

struct run_record *run_next(const struct run *run, struct run_cursor *cursor)
{
    if (cursor->chunk == NULL)
        cursor->chunk = run->first;
    else if (cursor->offset == cursor->chunk->used)
        *cursor = (struct run_cursor){ .chunk = cursor->chunk->next };
    if (cursor->chunk == NULL)
        return NULL;
    struct run_record *record = (void *)(uintptr_t)(cursor->chunk->bytes + cursor->offset);
    cursor->offset += record->size_bytes;
    return record;
}
