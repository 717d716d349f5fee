#include "client/backup/shard_writer.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "runtime/base/check.h"

#define CHUNK_BYTES_MIN   2048u
#define CHUNK_BYTES_FULL  (64u * 1024u)
#define CHUNK_END_MASK    15u /* One key in sixteen may end a chunk. */
#define COMPRESSION_LEVEL 3
#define KEY_BYTES_MAX     512u
#define VALUE_BYTES_MAX   (1408u * 1024u) /* A document's part with a cell of 1 MiB. */

struct shard_writer {
    struct shard_writer_options options;
    struct file_writer *pack;
    struct chunk_list list;
    struct chunk *known; /* Of the backup before, by hash. */
    uint32_t known_count;
    struct buf raw, packed, last_key;
    ZSTD_CCtx *zstd;
    struct row_digest rows;
    uint64_t row_bytes, written;
};

bool backup_row_next(struct reader *reader, struct slice *ret_key, struct slice *ret_value)
{
    if (reader->bad || reader_left(reader) == 0)
        return false;
    *ret_key = read_bytes(reader, KEY_BYTES_MAX);
    *ret_value = read_bytes(reader, VALUE_BYTES_MAX);
    reader->bad |= ret_key->size == 0;
    return !reader->bad;
}

static int by_hash(const void *a, const void *b)
{
    const struct chunk *left = a, *right = b;

    return memcmp(left->hash.bytes, right->hash.bytes, sizeof left->hash.bytes);
}

err shard_writer_new(const struct shard_writer_options *options, struct shard_writer **ret_writer,
                     struct backup_error *ret_why)
{
    char path[BACKUP_PATH_MAX];
    struct file_writer *pack;

    repository_file_path(options->repository, &options->place, REPOSITORY_PACK, path);
    err e = file_writer_new(path, &pack, ret_why);
    if (e != ERR_OK)
        return e;
    struct shard_writer *writer = mem_zalloc(sizeof *writer);
    writer->options = *options;
    writer->pack = pack;
    writer->zstd = ZSTD_createCCtx();
    CHECK(writer->zstd != NULL);
    if (options->before != NULL && options->before->count > 0) {
        writer->known_count = options->before->count;
        writer->known = mem_alloc(sizeof *writer->known * writer->known_count);
        memcpy(writer->known, options->before->chunks, sizeof *writer->known * writer->known_count);
        qsort(writer->known, writer->known_count, sizeof *writer->known, by_hash);
    }
    *ret_writer = writer;
    return ERR_OK;
}

static err pack_chunk(struct shard_writer *writer, struct chunk *chunk,
                      struct backup_error *ret_why)
{
    size_t bound = ZSTD_compressBound(writer->raw.size);

    buf_clear(&writer->packed);
    size_t size = ZSTD_compressCCtx(writer->zstd, buf_reserve(&writer->packed, bound), bound,
                                    writer->raw.data, writer->raw.size, COMPRESSION_LEVEL);
    CHECK(!ZSTD_isError(size));
    writer->packed.size = size;
    chunk->number = writer->options.place.number;
    chunk->offset = file_writer_size(writer->pack);
    chunk->packed_size = (uint32_t)size;
    writer->written++;
    return file_writer_put(writer->pack, buf_slice(&writer->packed), ret_why);
}

static err end_chunk(struct shard_writer *writer, struct backup_error *ret_why)
{
    struct chunk chunk = { .raw_size = (uint32_t)writer->raw.size };
    const struct chunk *known = NULL;
    err e = ERR_OK;

    if (writer->raw.size == 0)
        return ERR_OK;
    if (writer->list.count == CHUNKS_MAX) {
        backup_why(ret_why, "shard %u has over %u chunks", writer->options.place.part.shard,
                   CHUNKS_MAX);
        return ERR_TOO_LARGE;
    }
    chunk.hash = hash_u128(buf_slice(&writer->raw));
    if (writer->known_count > 0)
        known = bsearch(&chunk, writer->known, writer->known_count, sizeof chunk, by_hash);
    if (known != NULL && known->raw_size == chunk.raw_size)
        chunk = *known;
    else
        e = pack_chunk(writer, &chunk, ret_why);
    chunk_list_add(&writer->list, &chunk);
    buf_clear(&writer->raw);
    return e;
}

static bool ends_chunk(const struct shard_writer *writer, struct slice key)
{
    return writer->raw.size >= CHUNK_BYTES_FULL ||
           (writer->raw.size >= CHUNK_BYTES_MIN && (hash_u64(key) & CHUNK_END_MASK) == 0);
}

static err put_row(struct shard_writer *writer, struct slice key, struct slice value,
                   struct backup_error *ret_why)
{
    err e = ERR_OK;

    if (writer->rows.count > 0 && slice_compare(key, buf_slice(&writer->last_key)) <= 0) {
        backup_why(ret_why, "shard %u: rows came out of order", writer->options.place.part.shard);
        return ERR_CORRUPT;
    }
    if (writer->raw.size + key.size + value.size + 8 > CHUNK_RAW_BYTES_MAX)
        e = end_chunk(writer, ret_why);
    buf_clear(&writer->last_key);
    buf_append(&writer->last_key, key.data, key.size);
    row_digest_add(&writer->rows, key, value);
    writer->row_bytes += key.size + value.size;
    buf_put_bytes(&writer->raw, key);
    buf_put_bytes(&writer->raw, value);
    if (e == ERR_OK && ends_chunk(writer, key))
        e = end_chunk(writer, ret_why);
    return e;
}

err shard_writer_put(struct shard_writer *writer, struct slice rows, struct backup_error *ret_why)
{
    struct reader reader = reader_from(rows);
    struct slice key, value;
    err e = ERR_OK;

    while (e == ERR_OK && backup_row_next(&reader, &key, &value))
        e = put_row(writer, key, value, ret_why);
    if (e == ERR_OK && reader.bad) {
        backup_why(ret_why, "shard %u: rows came malformed", writer->options.place.part.shard);
        e = ERR_CORRUPT;
    }
    return e;
}

static err write_list(struct shard_writer *writer, struct manifest_file *ret_file,
                      struct backup_error *ret_why)
{
    char path[BACKUP_PATH_MAX];
    struct file_writer *file;
    struct buf bytes = { 0 };

    repository_file_path(writer->options.repository, &writer->options.place, REPOSITORY_LIST, path);
    err e = file_writer_new(path, &file, ret_why);
    if (e != ERR_OK)
        return e;
    chunk_list_encode(&writer->list, &bytes);
    e = file_writer_put(file, buf_slice(&bytes), ret_why);
    buf_deinit(&bytes);
    if (e == ERR_OK)
        return file_writer_finish(file, ret_file, ret_why);
    file_writer_free(file);
    return e;
}

err shard_writer_finish(struct shard_writer *writer, struct slice meta,
                        struct manifest_rows *ret_rows, struct backup_error *ret_why)
{
    struct manifest_rows made = { .rows = writer->rows, .row_bytes = writer->row_bytes };
    err e = end_chunk(writer, ret_why);

    if (e != ERR_OK)
        return e;
    made.rows = writer->rows;
    buf_append(&writer->list.meta, meta.data, meta.size);
    e = file_writer_finish(writer->pack, &made.pack, ret_why);
    writer->pack = NULL;
    if (e == ERR_OK)
        e = write_list(writer, &made.list, ret_why);
    if (e == ERR_OK)
        *ret_rows = made;
    return e;
}

void shard_writer_counts(const struct shard_writer *writer, uint64_t *ret_chunks,
                         uint64_t *ret_written)
{
    *ret_chunks = writer->list.count;
    *ret_written = writer->written;
}

const struct chunk_list *shard_writer_list(const struct shard_writer *writer)
{
    return &writer->list;
}

void shard_writer_free(struct shard_writer *writer)
{
    if (writer == NULL)
        return;
    file_writer_free(writer->pack);
    chunk_list_deinit(&writer->list);
    free(writer->known);
    buf_deinit(&writer->raw);
    buf_deinit(&writer->packed);
    buf_deinit(&writer->last_key);
    ZSTD_freeCCtx(writer->zstd);
    free(writer);
}
