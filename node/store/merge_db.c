#include "node/store/merge_db.h"

#include <errno.h>
#include <fcntl.h>
#include <rocksdb/c.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/check.h"

#define WRITE_BUFFER_BYTES (8u * 1024u * 1024u)
#define CACHE_BYTES        (2u * 1024u * 1024u)
#define WAL_BYTES_MAX      (32u * 1024u * 1024u)
#define ROCKS_LOG_BYTES    (1024u * 1024u)
#define INFO_LOG_WARN      2
#define OPEN_FILES_MAX     64
/* How RocksDB reads its own log at a start. */
#define WAL_WHOLE     1 /* Every record can be read. */
#define WAL_TO_DAMAGE 0 /* What stands before the first that cannot. */
#define WAL_SKIPPING  3 /* Also what stands behind it, from the next 32 KiB on. */
#define PATH_BYTES    1200u

enum letter { LETTER_LOG = 'L', LETTER_MEMBERS = 'M', LETTER_ROW = 'R', LETTER_STATE = 'S' };
/* Above every shard: an earlier database was given up. */
static const char lost_key[] = { (char)0xff, (char)0xff, 'X' };
/* In every batch: how many there were. */
static const char batch_key[] = { (char)0xff, (char)0xff, 'N' };

struct merge_db {
    rocksdb_t *rocks;
    rocksdb_options_t *options;
    rocksdb_writeoptions_t *write_options;
    rocksdb_readoptions_t *read_options;
    const struct log *log;
    bool lost;
    atomic_uint_fast64_t batches; /* Of this database, ever. */
    atomic_uint_fast64_t writes, written_bytes;
};

struct merge_batch {
    rocksdb_writebatch_t *rocks;
    size_t bytes;
    struct buf key, end;
};

/* ---- open and close ---- */

static void set_options(struct merge_db *db)
{
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_cache_t *cache = rocksdb_cache_create_lru(CACHE_BYTES);

    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_block_based_options_destroy(table);
    rocksdb_cache_destroy(cache);
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_paranoid_checks(options, 1);
    rocksdb_options_set_wal_recovery_mode(options, WAL_WHOLE);
    rocksdb_options_set_max_total_wal_size(options, WAL_BYTES_MAX);
    rocksdb_options_set_write_buffer_size(options, WRITE_BUFFER_BYTES);
    rocksdb_options_set_max_open_files(options, OPEN_FILES_MAX);
    rocksdb_options_set_info_log_level(options, INFO_LOG_WARN);
    rocksdb_options_set_keep_log_file_num(options, 2);
    rocksdb_options_set_max_log_file_size(options, ROCKS_LOG_BYTES);
    rocksdb_options_set_stats_dump_period_sec(options, 0);
    db->options = options;
    db->write_options = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(db->write_options, 1);
    db->read_options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_verify_checksums(db->read_options, 1);
    rocksdb_readoptions_set_fill_cache(db->read_options, 0);
}

static void release(struct merge_db *db)
{
    rocksdb_options_destroy(db->options);
    rocksdb_writeoptions_destroy(db->write_options);
    rocksdb_readoptions_destroy(db->read_options);
    free(db);
}

/* Takes the error. A file that should be there and is not counts as damage. */
static err classify(const struct log *log, const char *what, char *error)
{
    bool damage = strncmp(error, "Corruption", 10) == 0 || strstr(error, "No such file") != NULL;

    log_event(log, LOG_ERROR, damage ? "documents.database_damaged" : "documents.database_failed",
              LOG_S("what", what), LOG_S("error", error));
    rocksdb_free(error);
    return damage ? ERR_CORRUPT : ERR_IO;
}

static bool is_database(const char *directory)
{
    char path[PATH_BYTES + 16];
    struct stat found;

    snprintf(path, sizeof path, "%s/CURRENT", directory);
    return stat(path, &found) == 0;
}

/* Where merge_db_begin_again makes the new one, with what says that an earlier one was lost. */
static void name_beside(const char *directory, char ret_beside[PATH_BYTES])
{
    snprintf(ret_beside, PATH_BYTES, "%s.new", directory);
}

bool merge_db_exists(const char *directory)
{
    char beside[PATH_BYTES];

    name_beside(directory, beside);
    return is_database(directory) || is_database(beside);
}

/* The damaged one was set aside, which is done once the new one is whole, and a crash came. */
static err take_place(const char *directory)
{
    char beside[PATH_BYTES];

    name_beside(directory, beside);
    if (is_database(directory) || !is_database(beside))
        return ERR_OK;
    return rename(beside, directory) == 0 ? ERR_OK : ERR_IO;
}

/* NULL: there is none. To be freed. */
static err get(struct merge_db *db, struct slice key, char **ret_value, size_t *ret_size)
{
    char *error = NULL;

    *ret_value = rocksdb_get(db->rocks, db->read_options, (const char *)key.data, key.size,
                             ret_size, &error);
    return error == NULL ? ERR_OK : classify(db->log, "open", error);
}

static struct slice key_slice(const char *key, size_t size)
{
    return (struct slice){ (const uint8_t *)key, size };
}

static err read_heads(struct merge_db *db)
{
    char *lost = NULL, *batches = NULL;
    uint64_t count = 0;
    size_t size = 0;
    err e = get(db, key_slice(lost_key, sizeof lost_key), &lost, &size);

    if (e == ERR_OK)
        e = get(db, key_slice(batch_key, sizeof batch_key), &batches, &size);
    db->lost = lost != NULL;
    if (batches != NULL && size == sizeof count)
        memcpy(&count, batches, sizeof count);
    else if (batches != NULL)
        e = ERR_CORRUPT;
    if (count > 0)
        atomic_store(&db->batches, count);
    rocksdb_free(lost);
    rocksdb_free(batches);
    return e;
}

static err open_rocks(struct merge_db *db, const char *directory, int wal, char *ret_text)
{
    char *error = NULL;

    rocksdb_options_set_wal_recovery_mode(db->options, wal);
    db->rocks = wal == WAL_SKIPPING ? rocksdb_open_for_read_only(db->options, directory, 0, &error)
                                    : rocksdb_open(db->options, directory, &error);
    if (error != NULL) {
        snprintf(ret_text, MERGE_DB_TEXT_BYTES, "%s: %s", directory, error);
        return classify(db->log, "open", error);
    }
    err e = read_heads(db);
    if (e != ERR_OK) {
        snprintf(ret_text, MERGE_DB_TEXT_BYTES, "%s: cannot be read", directory);
        rocksdb_close(db->rocks);
    }
    return e;
}

/* Something in RocksDB's log cannot be read. A crash tears what was written last and never
 * acknowledged; if there are batches behind it, what cannot be read was acknowledged before them.
 */
static err open_torn(struct merge_db *db, const char *directory, char *ret_text)
{
    err e = open_rocks(db, directory, WAL_SKIPPING, ret_text);

    if (e != ERR_OK)
        return e;
    uint64_t seen = atomic_load(&db->batches);

    rocksdb_close(db->rocks);
    atomic_store(&db->batches, 0);
    e = open_rocks(db, directory, WAL_TO_DAMAGE, ret_text);
    if (e != ERR_OK)
        return e;
    uint64_t kept = atomic_load(&db->batches);

    log_event(db->log, LOG_WARN, "documents.torn_tail", LOG_N("batches", kept),
              LOG_N("batches_seen", seen));
    if (kept >= seen)
        return ERR_OK;
    snprintf(ret_text, MERGE_DB_TEXT_BYTES, "%s: a part of its log cannot be read", directory);
    rocksdb_close(db->rocks);
    return ERR_CORRUPT;
}

err merge_db_open(const char *directory, const struct log *log, struct merge_db **ret_db,
                  char ret_text[MERGE_DB_TEXT_BYTES])
{
    if (take_place(directory) != ERR_OK) {
        snprintf(ret_text, MERGE_DB_TEXT_BYTES, "%s: cannot be renamed: %s", directory,
                 strerror(errno));
        return ERR_IO;
    }
    struct merge_db *db = mem_zalloc(sizeof *db);

    db->log = log;
    set_options(db);
    err e = open_rocks(db, directory, WAL_WHOLE, ret_text);

    if (e == ERR_CORRUPT)
        e = open_torn(db, directory, ret_text);
    if (e != ERR_OK) {
        release(db);
        return e;
    }
    *ret_db = db;
    return ERR_OK;
}

void merge_db_close(struct merge_db *db)
{
    if (db == NULL)
        return;
    rocksdb_close(db->rocks);
    release(db);
}

bool merge_db_lost(const struct merge_db *db)
{
    return db->lost;
}

static void destroy(const char *directory)
{
    char *error = NULL;
    rocksdb_options_t *options = rocksdb_options_create();
    struct stat found;

    if (stat(directory, &found) == 0)
        rocksdb_destroy_db(options, directory, &error);
    rocksdb_options_destroy(options);
    rocksdb_free(error);
    if (stat(directory, &found) == 0)
        (void)rmdir(directory);
}

/* What a person may still want to look at stands aside; one of them is kept. */
static err set_aside(const char *directory)
{
    char aside[PATH_BYTES];

    snprintf(aside, sizeof aside, "%s.damaged", directory);
    destroy(aside);
    return rename(directory, aside) == 0 || errno == ENOENT ? ERR_OK : ERR_IO;
}

/* A new one that says that an earlier one was lost. */
static err make_beside(const char *beside, const struct log *log,
                       char ret_text[MERGE_DB_TEXT_BYTES])
{
    struct merge_db *db;
    char *error = NULL;

    destroy(beside);
    err e = merge_db_open(beside, log, &db, ret_text);

    if (e != ERR_OK)
        return ERR_IO; /* It is not the one that is damaged. */
    rocksdb_put(db->rocks, db->write_options, lost_key, sizeof lost_key, "", 0, &error);
    if (error != NULL) {
        snprintf(ret_text, MERGE_DB_TEXT_BYTES, "the new one cannot be written: %s", error);
        rocksdb_free(error);
        e = ERR_IO;
    }
    merge_db_close(db);
    return e;
}

/* Whenever this ends early, a start finds the damaged one, or the new one that says so. */
err merge_db_begin_again(const char *directory, const struct log *log, struct merge_db **ret_db,
                         char ret_text[MERGE_DB_TEXT_BYTES])
{
    char beside[PATH_BYTES];

    name_beside(directory, beside);
    err e = make_beside(beside, log, ret_text);

    if (e != ERR_OK)
        return e;
    if (set_aside(directory) != ERR_OK) {
        snprintf(ret_text, MERGE_DB_TEXT_BYTES, "%s: cannot be renamed: %s", directory,
                 strerror(errno));
        return ERR_IO;
    }
    return merge_db_open(directory, log, ret_db, ret_text);
}

/* ---- writing ---- */

static struct buf *put_key(struct buf *key, uint32_t shard, enum letter letter)
{
    CHECK(shard < UINT16_MAX);
    buf_clear(key);
    buf_put_u16_be(key, (uint16_t)shard);
    buf_put_u8(key, (uint8_t)letter);
    return key;
}

/* So that keys are in the order of their numbers. */
static void put_u64_be(struct buf *key, uint64_t number)
{
    buf_put_u32_be(key, (uint32_t)(number >> 32));
    buf_put_u32_be(key, (uint32_t)number);
}

struct merge_batch *merge_batch_new(void)
{
    struct merge_batch *batch = mem_zalloc(sizeof *batch);

    batch->rocks = rocksdb_writebatch_create();
    return batch;
}

void merge_batch_free(struct merge_batch *batch)
{
    if (batch == NULL)
        return;
    rocksdb_writebatch_destroy(batch->rocks);
    buf_deinit(&batch->key);
    buf_deinit(&batch->end);
    free(batch);
}

static void put(struct merge_batch *batch, struct slice value)
{
    rocksdb_writebatch_put(batch->rocks, (const char *)batch->key.data, batch->key.size,
                           value.size > 0 ? (const char *)value.data : "", value.size);
    batch->bytes += batch->key.size + value.size;
}

static void remove_range(struct merge_batch *batch)
{
    rocksdb_writebatch_delete_range(batch->rocks, (const char *)batch->key.data, batch->key.size,
                                    (const char *)batch->end.data, batch->end.size);
    batch->bytes += batch->key.size + batch->end.size;
}

void merge_batch_log(struct merge_batch *batch, uint32_t shard, uint64_t number,
                     struct slice record)
{
    CHECK(record.size <= MERGE_DB_RECORD_BYTES_MAX);
    put_u64_be(put_key(&batch->key, shard, LETTER_LOG), number);
    put(batch, record);
}

void merge_batch_cut(struct merge_batch *batch, uint32_t shard, uint64_t end)
{
    put_u64_be(put_key(&batch->key, shard, LETTER_LOG), 0);
    put_u64_be(put_key(&batch->end, shard, LETTER_LOG), end);
    remove_range(batch);
}

void merge_batch_state(struct merge_batch *batch, uint32_t shard, struct slice state)
{
    put_key(&batch->key, shard, LETTER_STATE);
    put(batch, state);
}

void merge_batch_members(struct merge_batch *batch, uint32_t shard, struct slice members)
{
    put_key(&batch->key, shard, LETTER_MEMBERS);
    put(batch, members);
}

void merge_batch_row(struct merge_batch *batch, uint32_t shard, struct slice key, struct slice row)
{
    struct buf *at = put_key(&batch->key, shard, LETTER_ROW);

    buf_append(at, key.data, key.size);
    put(batch, row);
}

void merge_batch_row_gone(struct merge_batch *batch, uint32_t shard, struct slice key)
{
    struct buf *at = put_key(&batch->key, shard, LETTER_ROW);

    buf_append(at, key.data, key.size);
    rocksdb_writebatch_delete(batch->rocks, (const char *)at->data, at->size);
    batch->bytes += at->size;
}

void merge_batch_drop(struct merge_batch *batch, uint32_t shard)
{
    CHECK(shard + 1 < UINT16_MAX);
    buf_clear(&batch->key);
    buf_clear(&batch->end);
    buf_put_u16_be(&batch->key, (uint16_t)shard);
    buf_put_u16_be(&batch->end, (uint16_t)(shard + 1));
    remove_range(batch);
}

size_t merge_batch_bytes(const struct merge_batch *batch)
{
    return batch->bytes;
}

void merge_db_write(struct merge_db *db, struct merge_batch *batch)
{
    char *error = NULL;
    uint64_t number = atomic_fetch_add(&db->batches, 1) + 1;

    rocksdb_writebatch_put(batch->rocks, batch_key, sizeof batch_key, (const char *)&number,
                           sizeof number);
    rocksdb_write(db->rocks, db->write_options, batch->rocks, &error);
    if (error != NULL) {
        log_event(db->log, LOG_ERROR, "documents.write_failed", LOG_S("error", error));
        abort(); /* What the disk holds is not known: DESIGN section 4. */
    }
    atomic_fetch_add(&db->writes, 1);
    atomic_fetch_add(&db->written_bytes, batch->bytes);
}

/* ---- reading ---- */

static struct slice key_of(const rocksdb_iterator_t *it)
{
    size_t size;
    const char *key = rocksdb_iter_key(it, &size);

    return (struct slice){ (const uint8_t *)key, size };
}

static struct slice value_of(const rocksdb_iterator_t *it)
{
    size_t size;
    const char *value = rocksdb_iter_value(it, &size);

    return (struct slice){ (const uint8_t *)value, size };
}

/* Behind the shard and the letter; false: of another. */
static bool rest_of(struct slice key, uint32_t shard, enum letter letter, struct slice *ret_rest)
{
    struct reader reader = reader_from(key);

    if (read_u16_be(&reader) != shard || read_u8(&reader) != (uint8_t)letter || reader.bad)
        return false;
    *ret_rest = (struct slice){ key.data + 3, key.size - 3 };
    return true;
}

static err end_of(struct merge_db *db, rocksdb_iterator_t *it)
{
    char *error = NULL;

    rocksdb_iter_get_error(it, &error);
    rocksdb_iter_destroy(it);
    return error == NULL ? ERR_OK : classify(db->log, "read", error);
}

/* One entry of the walk over a letter; NULL for `user` data that is not asked for. */
static void show(const struct merge_db_visit *visit, enum letter letter, struct slice rest,
                 struct slice value)
{
    struct reader reader = reader_from(rest);

    switch (letter) {
    case LETTER_MEMBERS:
        visit->members(visit->user, value);
        break;
    case LETTER_ROW:
        visit->row(visit->user, rest, value);
        break;
    case LETTER_STATE:
        visit->state(visit->user, value);
        break;
    case LETTER_LOG:
        visit->log(visit->user, read_u64_be(&reader), value);
        break;
    }
}

static err walk(struct merge_db *db, uint32_t shard, enum letter letter,
                const struct merge_db_visit *visit)
{
    rocksdb_iterator_t *it = rocksdb_create_iterator(db->rocks, db->read_options);
    struct buf from = { 0 };
    struct slice rest;

    put_key(&from, shard, letter);
    rocksdb_iter_seek(it, (const char *)from.data, from.size);
    for (; rocksdb_iter_valid(it) && rest_of(key_of(it), shard, letter, &rest);
         rocksdb_iter_next(it))
        show(visit, letter, rest, value_of(it));
    buf_deinit(&from);
    return end_of(db, it);
}

err merge_db_has(struct merge_db *db, uint32_t shard, bool *ret_has)
{
    rocksdb_iterator_t *it = rocksdb_create_iterator(db->rocks, db->read_options);
    struct buf from = { 0 };

    put_key(&from, shard, LETTER_LOG);
    rocksdb_iter_seek(it, (const char *)from.data, from.size);
    *ret_has = false;
    if (rocksdb_iter_valid(it)) {
        struct reader reader = reader_from(key_of(it));
        *ret_has = read_u16_be(&reader) == shard;
    }
    buf_deinit(&from);
    return end_of(db, it);
}

err merge_db_read(struct merge_db *db, uint32_t shard, const struct merge_db_visit *visit)
{
    static const enum letter order[] = { LETTER_MEMBERS, LETTER_STATE, LETTER_ROW, LETTER_LOG };
    err e = ERR_OK;

    for (size_t i = 0; i < ARRAY_SIZE(order) && e == ERR_OK; i++)
        e = walk(db, shard, order[i], visit);
    return e;
}

void merge_db_stats_get(struct merge_db *db, struct merge_db_stats *ret_stats)
{
    *ret_stats = (struct merge_db_stats){ .writes = atomic_load(&db->writes),
                                          .written_bytes = atomic_load(&db->written_bytes) };
}
