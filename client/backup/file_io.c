#include "client/backup/file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "runtime/base/check.h"

#define PIECE_BYTES (256u * 1024u)

struct file_writer {
    char path[BACKUP_PATH_MAX];
    int fd;
    uint64_t size;
    XXH3_state_t *hash;
};

static err io_failed(const char *path, const char *what, struct backup_error *ret_why)
{
    backup_why(ret_why, "%s cannot be %s: %s", path, what, strerror(errno));
    return errno == ENOENT ? ERR_NOT_FOUND : ERR_IO;
}

static struct hash128 hash_of(const XXH3_state_t *state)
{
    XXH128_canonical_t canonical;
    struct hash128 hash;

    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
    memcpy(hash.bytes, canonical.digest, sizeof hash.bytes);
    return hash;
}

err file_writer_new(const char *path, struct file_writer **ret_writer, struct backup_error *ret_why)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);

    if (fd < 0)
        return io_failed(path, "made", ret_why);
    struct file_writer *writer = mem_zalloc(sizeof *writer);
    snprintf(writer->path, sizeof writer->path, "%s", path);
    writer->fd = fd;
    writer->hash = XXH3_createState();
    CHECK(writer->hash != NULL);
    XXH3_128bits_reset(writer->hash);
    *ret_writer = writer;
    return ERR_OK;
}

err file_writer_put(struct file_writer *writer, struct slice bytes, struct backup_error *ret_why)
{
    size_t done = 0;

    while (done < bytes.size) {
        ssize_t written = write(writer->fd, bytes.data + done, bytes.size - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return io_failed(writer->path, "written", ret_why);
        done += (size_t)written;
    }
    if (bytes.size > 0)
        XXH3_128bits_update(writer->hash, bytes.data, bytes.size);
    writer->size += bytes.size;
    return ERR_OK;
}

uint64_t file_writer_size(const struct file_writer *writer)
{
    return writer->size;
}

err file_writer_finish(struct file_writer *writer, struct manifest_file *ret_file,
                       struct backup_error *ret_why)
{
    err e = ERR_OK;

    if (fsync(writer->fd) != 0)
        e = io_failed(writer->path, "made durable", ret_why);
    *ret_file = (struct manifest_file){ writer->size, hash_of(writer->hash) };
    file_writer_free(writer);
    return e;
}

void file_writer_free(struct file_writer *writer)
{
    if (writer == NULL)
        return;
    close(writer->fd);
    XXH3_freeState(writer->hash);
    free(writer);
}

/* Below 0: it failed. */
static ssize_t read_piece(int fd, uint8_t *to, size_t size)
{
    ssize_t got;

    do
        got = read(fd, to, size);
    while (got < 0 && errno == EINTR);
    return got;
}

err file_read(const char *path, size_t bytes_max, struct buf *ret_bytes,
              struct backup_error *ret_why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct buf bytes = { 0 };
    ssize_t got = 1;

    if (fd < 0)
        return io_failed(path, "read", ret_why);
    while (got > 0 && bytes.size <= bytes_max) {
        got = read_piece(fd, buf_reserve(&bytes, PIECE_BYTES), PIECE_BYTES);
        bytes.size += got > 0 ? (size_t)got : 0;
    }
    err e = ERR_OK;
    if (got < 0) {
        e = io_failed(path, "read", ret_why);
    } else if (bytes.size > bytes_max) {
        backup_why(ret_why, "%s has over %zu bytes", path, bytes_max);
        e = ERR_TOO_LARGE;
    }
    close(fd);
    if (e == ERR_OK)
        *ret_bytes = bytes;
    else
        buf_deinit(&bytes);
    return e;
}

static err hash_file(int fd, const char *path, struct manifest_file *ret_file,
                     struct backup_error *ret_why)
{
    XXH3_state_t *hash = XXH3_createState();
    uint8_t *piece = mem_alloc(PIECE_BYTES);
    struct manifest_file file = { 0 };
    ssize_t got;

    CHECK(hash != NULL);
    XXH3_128bits_reset(hash);
    while ((got = read_piece(fd, piece, PIECE_BYTES)) > 0) {
        XXH3_128bits_update(hash, piece, (size_t)got);
        file.bytes += (uint64_t)got;
    }
    file.hash = hash_of(hash);
    XXH3_freeState(hash);
    free(piece);
    *ret_file = file;
    return got == 0 ? ERR_OK : io_failed(path, "read", ret_why);
}

err file_check(const char *path, const struct manifest_file *wanted, struct backup_error *ret_why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct manifest_file found;

    if (fd < 0)
        return io_failed(path, "read", ret_why);
    err e = hash_file(fd, path, &found, ret_why);
    close(fd);
    if (e != ERR_OK)
        return e;
    if (found.bytes != wanted->bytes) {
        backup_why(ret_why, "%s is damaged: it has %" PRIu64 " bytes, the manifest says %" PRIu64,
                   path, found.bytes, wanted->bytes);
        return ERR_CORRUPT;
    }
    if (!hash128_equal(found.hash, wanted->hash)) {
        backup_why(ret_why, "%s is damaged: its checksum is not the manifest's", path);
        return ERR_CORRUPT;
    }
    return ERR_OK;
}

err directory_sync(const char *path, struct backup_error *ret_why)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return io_failed(path, "opened", ret_why);
    err e = fsync(fd) == 0 ? ERR_OK : io_failed(path, "made durable", ret_why);
    close(fd);
    return e;
}

err file_write_atomically(const char *directory, const char *name, struct slice bytes,
                          struct backup_error *ret_why)
{
    char path[BACKUP_PATH_MAX], made[BACKUP_PATH_MAX];
    struct file_writer *writer;
    struct manifest_file file;

    snprintf(path, sizeof path, "%.2000s/%.64s", directory, name);
    snprintf(made, sizeof made, "%.2000s/%.64s.new", directory, name);
    if (unlink(made) != 0 && errno != ENOENT)
        return io_failed(made, "removed", ret_why);
    err e = file_writer_new(made, &writer, ret_why);
    if (e != ERR_OK)
        return e;
    e = file_writer_put(writer, bytes, ret_why);
    if (e == ERR_OK)
        e = file_writer_finish(writer, &file, ret_why);
    else
        file_writer_free(writer);
    if (e == ERR_OK && rename(made, path) != 0)
        e = io_failed(path, "named", ret_why);
    if (e != ERR_OK)
        (void)unlink(made); /* What is left of it is written over the next time. */
    return e == ERR_OK ? directory_sync(directory, ret_why) : e;
}
