/* A pass over the whole database in small steps, which finds what changed on the disk unread. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "node/store/db_private.h"

#define PATH_BYTES   4096u
#define FORGET_STEPS 64u

/* ---- what memory has of the files ------------------------------------------------------------ */

/* Some at a time, since reads wait meanwhile. Blocks that are in use stay until they are not. */
static void forget_blocks(struct db *db, const atomic_bool *stop)
{
    size_t capacity = rocksdb_cache_get_capacity(db->cache);

    for (size_t left = FORGET_STEPS; left-- > 0 && !atomic_load(stop);)
        rocksdb_cache_set_capacity(db->cache, capacity / FORGET_STEPS * left);
    rocksdb_cache_set_capacity(db->cache, capacity);
}

/* RocksDB reads through the system's pages. A file that cannot be opened is gone, or its reads will
 * tell. */
static void forget_pages(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

void db_scrub_begin(struct db *db, struct db_scrub *ret_scrub, const atomic_bool *stop)
{
    const rocksdb_livefiles_t *files = rocksdb_livefiles(db->rocks);
    int count = rocksdb_livefiles_count(files);

    for (int i = 0; i < count && !atomic_load(stop); i++) {
        char path[PATH_BYTES];

        /* Its names begin with a slash. */
        snprintf(path, sizeof path, "%s%s", db->directory, rocksdb_livefiles_name(files, i));
        forget_pages(path);
    }
    rocksdb_livefiles_destroy(files);
    forget_blocks(db, stop);
    *ret_scrub = (struct db_scrub){ 0 };
}

void db_scrub_deinit(struct db_scrub *scrub)
{
    buf_deinit(&scrub->next);
    *scrub = (struct db_scrub){ 0 };
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Reads on from where `iter` is; what it is at in the end is still to be read. */
static void walk(rocksdb_iterator_t *iter, struct db_scrub *scrub, uint32_t bytes_max,
                 const atomic_bool *stop)
{
    uint64_t until = scrub->row_bytes + bytes_max;

    while (rocksdb_iter_valid(iter) && scrub->row_bytes < until && !atomic_load(stop)) {
        size_t key_bytes, value_bytes;

        (void)rocksdb_iter_key(iter, &key_bytes);
        (void)rocksdb_iter_value(iter, &value_bytes);
        scrub->row_bytes += key_bytes + value_bytes;
        rocksdb_iter_next(iter);
    }
}

static void remember(const rocksdb_iterator_t *iter, struct db_scrub *scrub)
{
    size_t size;

    scrub->complete = rocksdb_iter_valid(iter) == 0;
    if (scrub->complete)
        return;
    const char *key = rocksdb_iter_key(iter, &size);
    buf_clear(&scrub->next);
    buf_append(&scrub->next, key, size);
}

err db_scrub_step(struct db *db, struct db_scrub *scrub, uint32_t bytes_max,
                  const atomic_bool *stop)
{
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();
    char *error = NULL;

    rocksdb_readoptions_set_verify_checksums(options, 1);
    rocksdb_readoptions_set_fill_cache(options, 0);
    /* Else blocks whose rows a later drop covers are passed over; a merge will read them. */
    rocksdb_readoptions_set_ignore_range_deletions(options, 1);
    rocksdb_iterator_t *iter = rocksdb_create_iterator(db->rocks, options);
    if (scrub->next.size > 0)
        rocksdb_iter_seek(iter, (const char *)scrub->next.data, scrub->next.size);
    else
        rocksdb_iter_seek_to_first(iter);
    walk(iter, scrub, bytes_max, stop);
    remember(iter, scrub);
    rocksdb_iter_get_error(iter, &error);
    rocksdb_iter_destroy(iter);
    rocksdb_readoptions_destroy(options);
    return error == NULL ? ERR_OK : db_read_failed(db, "scrub", error);
}
