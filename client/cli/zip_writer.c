#include "client/cli/zip_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <zlib.h>

#include "runtime/base/check.h"

#define MEMBER_MAGIC      0x04034b50u
#define DIRECTORY_MAGIC   0x02014b50u
#define END_MAGIC         0x06054b50u
#define VERSION_NEEDED    20u
#define VERSION_MADE      (3u << 8 | VERSION_NEEDED) /* On Unix, so that modes are understood. */
#define FLAG_UTF8         0x0800u
#define METHOD_DEFLATE    8u
#define MODE_OWNER_ALONE  (0100600u << 16)
#define WINDOW_BITS_PLAIN (-15) /* Deflate without zlib's own header. */

struct zip_writer {
    char *path;
    char *temporary;
    int file;
    bool finished, broken;
    uint16_t dos_time, dos_date;
    uint32_t count;
    uint64_t offset;
    struct buf directory;
};

static void set_time(struct zip_writer *zip, int64_t time_s)
{
    time_t seconds = (time_t)time_s;
    struct tm tm = { 0 };

    gmtime_r(&seconds, &tm);
    if (tm.tm_year < 80)
        tm = (struct tm){ .tm_year = 80, .tm_mon = 0, .tm_mday = 1 };
    zip->dos_time = (uint16_t)(tm.tm_hour << 11 | tm.tm_min << 5 | tm.tm_sec / 2);
    zip->dos_date = (uint16_t)((tm.tm_year - 80) << 9 | (tm.tm_mon + 1) << 5 | tm.tm_mday);
}

err zip_writer_new(const char *path, int64_t time_s, struct zip_writer **ret_zip)
{
    struct zip_writer *zip = mem_zalloc(sizeof *zip);
    size_t size = strlen(path) + sizeof ".XXXXXX";

    zip->path = strdup(path);
    zip->temporary = mem_zalloc(size);
    CHECK(zip->path != NULL);
    snprintf(zip->temporary, size, "%s.XXXXXX", path);
    set_time(zip, time_s);
    zip->file = mkostemp(zip->temporary, O_CLOEXEC); /* Mode 0600. */
    if (zip->file < 0) {
        zip->finished = true; /* Nothing to remove. */
        zip_writer_free(zip);
        return ERR_IO;
    }
    *ret_zip = zip;
    return ERR_OK;
}

void zip_writer_free(struct zip_writer *zip)
{
    if (zip == NULL)
        return;
    int why = errno;

    if (zip->file >= 0)
        close(zip->file);
    if (!zip->finished)
        unlink(zip->temporary);
    errno = why;
    buf_deinit(&zip->directory);
    free(zip->temporary);
    free(zip->path);
    free(zip);
}

static err write_all(struct zip_writer *zip, struct slice bytes)
{
    while (bytes.size > 0) {
        ssize_t written = write(zip->file, bytes.data, bytes.size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            zip->broken = true;
            return ERR_IO;
        }
        bytes.data += written;
        bytes.size -= (size_t)written;
        zip->offset += (uint64_t)written;
    }
    return ERR_OK;
}

static void deflate_all(struct slice content, struct buf *out)
{
    z_stream stream = { 0 };

    CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS_PLAIN, 8,
                       Z_DEFAULT_STRATEGY) == Z_OK);
    uLong bound = deflateBound(&stream, content.size);
    stream.next_in = (Bytef *)(uintptr_t)content.data;
    stream.avail_in = (uInt)content.size;
    stream.next_out = buf_reserve(out, bound);
    stream.avail_out = (uInt)bound;
    CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    out->size += stream.total_out;
    CHECK(deflateEnd(&stream) == Z_OK);
}

/* What a member's own header and its row of the directory have alike. */
static void put_facts(struct buf *out, const struct zip_writer *zip, struct slice content,
                      size_t deflated, size_t name_size)
{
    uLong crc = crc32(0L, Z_NULL, 0);

    if (content.size > 0)
        crc = crc32(crc, content.data, (uInt)content.size);
    buf_put_u16(out, VERSION_NEEDED);
    buf_put_u16(out, FLAG_UTF8);
    buf_put_u16(out, METHOD_DEFLATE);
    buf_put_u16(out, zip->dos_time);
    buf_put_u16(out, zip->dos_date);
    buf_put_u32(out, (uint32_t)crc);
    buf_put_u32(out, (uint32_t)deflated);
    buf_put_u32(out, (uint32_t)content.size);
    buf_put_u16(out, (uint16_t)name_size);
    buf_put_u16(out, 0); /* No extra field. */
}

static void put_directory(struct zip_writer *zip, const char *name, const struct buf *facts)
{
    buf_put_u32(&zip->directory, DIRECTORY_MAGIC);
    buf_put_u16(&zip->directory, VERSION_MADE);
    buf_append(&zip->directory, facts->data, facts->size);
    buf_put_u16(&zip->directory, 0); /* Comment. */
    buf_put_u16(&zip->directory, 0); /* Disk. */
    buf_put_u16(&zip->directory, 0); /* Internal attributes. */
    buf_put_u32(&zip->directory, MODE_OWNER_ALONE);
    buf_put_u32(&zip->directory, (uint32_t)zip->offset);
    buf_append(&zip->directory, name, strlen(name));
}

err zip_writer_add(struct zip_writer *zip, const char *name, struct slice content)
{
    struct buf facts = { 0 }, head = { 0 }, deflated = { 0 };

    CHECK(!zip->finished);
    if (zip->count == ZIP_MEMBERS_MAX || strlen(name) > ZIP_NAME_MAX ||
        content.size > ZIP_MEMBER_BYTES)
        return ERR_TOO_LARGE;
    deflate_all(content, &deflated);
    if (zip->offset + deflated.size + zip->directory.size > ZIP_ARCHIVE_BYTES) {
        buf_deinit(&deflated);
        return ERR_TOO_LARGE;
    }
    put_facts(&facts, zip, content, deflated.size, strlen(name));
    put_directory(zip, name, &facts);
    zip->count++;
    buf_put_u32(&head, MEMBER_MAGIC);
    buf_append(&head, facts.data, facts.size);
    buf_append(&head, name, strlen(name));
    err e = write_all(zip, buf_slice(&head));
    if (e == ERR_OK)
        e = write_all(zip, buf_slice(&deflated));
    buf_deinit(&head);
    buf_deinit(&facts);
    buf_deinit(&deflated);
    return e;
}

err zip_writer_finish(struct zip_writer *zip)
{
    struct buf end = { 0 };
    uint64_t begins = zip->offset;

    CHECK(!zip->finished);
    if (zip->broken)
        return ERR_IO;
    err e = write_all(zip, buf_slice(&zip->directory));
    buf_put_u32(&end, END_MAGIC);
    buf_put_u16(&end, 0); /* This disk, and that of the directory. */
    buf_put_u16(&end, 0);
    buf_put_u16(&end, (uint16_t)zip->count);
    buf_put_u16(&end, (uint16_t)zip->count);
    buf_put_u32(&end, (uint32_t)zip->directory.size);
    buf_put_u32(&end, (uint32_t)begins);
    buf_put_u16(&end, 0); /* Comment. */
    if (e == ERR_OK)
        e = write_all(zip, buf_slice(&end));
    buf_deinit(&end);
    if (e != ERR_OK || fsync(zip->file) != 0 || rename(zip->temporary, zip->path) != 0)
        return ERR_IO;
    zip->finished = true;
    return ERR_OK;
}
