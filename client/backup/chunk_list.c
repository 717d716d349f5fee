#include "client/backup/chunk_list.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

void chunk_list_deinit(struct chunk_list *list)
{
    buf_deinit(&list->meta);
    free(list->chunks);
    *list = (struct chunk_list){ 0 };
}

void chunk_list_add(struct chunk_list *list, const struct chunk *chunk)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity > 0 ? list->capacity * 2 : 64;
        list->chunks = mem_realloc(list->chunks, sizeof *list->chunks * list->capacity);
    }
    list->chunks[list->count++] = *chunk;
}

void chunk_list_encode(const struct chunk_list *list, struct buf *out)
{
    buf_put_bytes(out, buf_slice(&list->meta));
    buf_put_u32(out, list->count);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct chunk *chunk = &list->chunks[i];
        buf_append(out, chunk->hash.bytes, sizeof chunk->hash.bytes);
        buf_put_u64(out, chunk->number);
        buf_put_u64(out, chunk->offset);
        buf_put_u32(out, chunk->packed_size);
        buf_put_u32(out, chunk->raw_size);
    }
}

static void read_chunk(struct reader *reader, uint64_t number, struct chunk *chunk)
{
    struct slice hash = read_raw(reader, sizeof chunk->hash.bytes);

    if (reader->bad)
        return;
    memcpy(chunk->hash.bytes, hash.data, sizeof chunk->hash.bytes);
    chunk->number = read_u64(reader);
    chunk->offset = read_u64(reader);
    chunk->packed_size = read_u32(reader);
    chunk->raw_size = read_u32(reader);
    reader->bad |= chunk->number == 0 || chunk->number > number || chunk->raw_size == 0 ||
                   chunk->raw_size > CHUNK_RAW_BYTES_MAX || chunk->packed_size == 0 ||
                   chunk->packed_size > 2 * CHUNK_RAW_BYTES_MAX || chunk->offset > INT64_MAX / 2;
}

err chunk_list_decode(struct slice bytes, uint64_t number, struct chunk_list *ret_list)
{
    struct reader reader = reader_from(bytes);
    struct chunk_list list = { 0 };
    struct slice meta = read_bytes(&reader, CHUNK_META_BYTES_MAX);

    if (meta.size > 0)
        buf_append(&list.meta, meta.data, meta.size);
    uint32_t count = read_u32(&reader);
    reader.bad |= count > CHUNKS_MAX;
    for (uint32_t i = 0; i < count && !reader.bad; i++) {
        struct chunk chunk = { 0 };
        read_chunk(&reader, number, &chunk);
        if (!reader.bad)
            chunk_list_add(&list, &chunk);
    }
    if (reader_finish(&reader) != ERR_OK) {
        chunk_list_deinit(&list);
        return ERR_CORRUPT;
    }
    *ret_list = list;
    return ERR_OK;
}
