#include "client/backup/shard_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "client/backup/shard_writer.h"
#include "runtime/base/check.h"

struct shard_reader {
    const struct repository *repository;
    const struct manifest *manifest;
    struct backup_part part;
    struct chunk_list list;
    uint32_t next;
    uint64_t open_number; /* Whose pack is open; 0: none. */
    int fd;
    ZSTD_DCtx *zstd;
    struct buf packed, raw, last_key;
    struct row_digest rows;
};

err shard_reader_new(const struct repository *repository, const struct manifest *manifest,
                     const struct backup_part *part, struct shard_reader **ret_reader,
                     struct backup_error *ret_why)
{
    struct chunk_list list;

    CHECK(part->shard < manifest->shard_count);
    err e = repository_list(repository, manifest, part, &list, ret_why);
    if (e != ERR_OK)
        return e;
    struct shard_reader *reader = mem_zalloc(sizeof *reader);
    reader->repository = repository;
    reader->manifest = manifest;
    reader->part = *part;
    reader->list = list;
    reader->fd = -1;
    reader->zstd = ZSTD_createDCtx();
    CHECK(reader->zstd != NULL);
    *ret_reader = reader;
    return ERR_OK;
}

static err open_pack(struct shard_reader *reader, uint64_t number, const char *path,
                     struct backup_error *ret_why)
{
    if (reader->open_number == number)
        return ERR_OK;
    if (reader->fd >= 0)
        close(reader->fd);
    reader->open_number = 0;
    reader->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (reader->fd < 0) {
        backup_why(ret_why, "%s cannot be read: %s", path, strerror(errno));
        return errno == ENOENT ? ERR_NOT_FOUND : ERR_IO;
    }
    reader->open_number = number;
    return ERR_OK;
}

/* False: the file is too short, or cannot be read. */
static bool read_at(int fd, uint64_t offset, uint8_t *to, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t got = pread(fd, to + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static bool unpack(struct shard_reader *reader, const struct chunk *chunk)
{
    buf_clear(&reader->packed);
    buf_clear(&reader->raw);
    if (!read_at(reader->fd, chunk->offset, buf_reserve(&reader->packed, chunk->packed_size),
                 chunk->packed_size))
        return false;
    size_t size = ZSTD_decompressDCtx(reader->zstd, buf_reserve(&reader->raw, chunk->raw_size),
                                      chunk->raw_size, reader->packed.data, chunk->packed_size);
    if (ZSTD_isError(size) || size != chunk->raw_size)
        return false;
    reader->raw.size = size;
    return hash128_equal(hash_u128(buf_slice(&reader->raw)), chunk->hash);
}

/* False: malformed, or out of order. */
static bool count_rows(struct shard_reader *reader)
{
    struct reader rows = reader_from(buf_slice(&reader->raw));
    struct slice key, value;

    while (backup_row_next(&rows, &key, &value)) {
        if (reader->rows.count > 0 && slice_compare(key, buf_slice(&reader->last_key)) <= 0)
            return false;
        buf_clear(&reader->last_key);
        buf_append(&reader->last_key, key.data, key.size);
        row_digest_add(&reader->rows, key, value);
    }
    return !rows.bad;
}

static err at_end(const struct shard_reader *reader, struct backup_error *ret_why)
{
    const struct row_digest *wanted = &manifest_rows_of(reader->manifest, &reader->part)->rows;

    if (reader->rows.count == wanted->count && reader->rows.sums[0] == wanted->sums[0] &&
        reader->rows.sums[1] == wanted->sums[1])
        return ERR_OK;
    backup_why(ret_why,
               "backup %" PRIu64 ": the %s of shard %" PRIu32 " are not what the manifest says",
               reader->manifest->number, reader->part.kind == BACKUP_STATE ? "rows" : "documents",
               reader->part.shard);
    return ERR_CORRUPT;
}

err shard_reader_next(struct shard_reader *reader, struct slice *ret_rows,
                      struct backup_error *ret_why)
{
    char path[BACKUP_PATH_MAX];

    *ret_rows = (struct slice){ 0 };
    if (reader->next == reader->list.count)
        return at_end(reader, ret_why);
    const struct chunk *chunk = &reader->list.chunks[reader->next++];
    repository_file_path(reader->repository,
                         &(struct repository_place){ chunk->number, reader->part }, REPOSITORY_PACK,
                         path);
    err e = open_pack(reader, chunk->number, path, ret_why);
    if (e != ERR_OK)
        return e;
    if (!unpack(reader, chunk) || !count_rows(reader)) {
        backup_why(ret_why,
                   "%.300s is damaged: the %" PRIu32 " bytes at %" PRIu64 " are not what "
                   "was written",
                   path, chunk->packed_size, chunk->offset);
        return ERR_CORRUPT;
    }
    *ret_rows = buf_slice(&reader->raw);
    return ERR_OK;
}

void shard_reader_free(struct shard_reader *reader)
{
    if (reader == NULL)
        return;
    if (reader->fd >= 0)
        close(reader->fd);
    chunk_list_deinit(&reader->list);
    ZSTD_freeDCtx(reader->zstd);
    buf_deinit(&reader->packed);
    buf_deinit(&reader->raw);
    buf_deinit(&reader->last_key);
    free(reader);
}
