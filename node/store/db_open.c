/* Opening and closing: what is asked of RocksDB. */
#include "node/store/db.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/store/db_private.h"
#include "runtime/base/check.h"

#define BLOCK_SIZE       4096u
#define ARENA_BYTES      (256u * 1024u)
#define ROCKS_LOG_BYTES  (1024u * 1024u)
#define BLOOM_BITS       10.0
#define REFILL_US        100000
#define FAIRNESS         10
#define INFO_LOG_WARN    2
#define MEMTABLES_MAX    2
#define READ_TIER_MEMORY 1 /* kBlockCacheTier */
/* Merging a few new files at a time rewrites what lies below them for each few: under a sustained
 * load that cost more than all else a node did. So they gather up to so many bytes; but cold reads
 * pay for each file, with a filter, so let a few large buffers make them. */
#define L0_BYTES_COMPACT (384u * 1024u * 1024u)
#define L0_FILES_MIN     4u
#define L0_FILES_MAX     24u
/* Of the write buffer: most rows that are looked for are not in it. */
#define MEMTABLE_BLOOM 0.02

struct db_config db_config_default(void)
{
    return (struct db_config){
        .cache_bytes = 64u * 1024u * 1024u,
        .write_buffer_bytes = 32u * 1024u * 1024u,
        .rate_bytes_per_s = 32u * 1024u * 1024u,
        .open_files_max = 256,
        .background_jobs = 2,
        .direct_io = true,
    };
}

/* ---- options ------------------------------------------------------------------------------ */

static void set_tables(struct db *db, const struct db_config *config)
{
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();

    db->cache = rocksdb_cache_create_lru(config->cache_bytes);
    rocksdb_block_based_options_set_format_version(table, 5);
    rocksdb_block_based_options_set_block_size(table, BLOCK_SIZE);
    rocksdb_block_based_options_set_block_cache(table, db->cache);
    rocksdb_block_based_options_set_filter_policy(table,
                                                  rocksdb_filterpolicy_create_bloom(BLOOM_BITS));
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
    rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(table, 1);
    /* Index and filter in parts: a cold row reads 4 KiB of them, not a whole filter of 100 KiB and
     * more, checksummed and decompressed each time the small cache has lost it. */
    rocksdb_block_based_options_set_index_type(
        table, rocksdb_block_based_table_index_type_two_level_index_search);
    rocksdb_block_based_options_set_partition_filters(table, 1);
    rocksdb_block_based_options_set_metadata_block_size(table, BLOCK_SIZE);
    rocksdb_block_based_options_set_pin_top_level_index_and_filter(table, 1);
    rocksdb_options_set_block_based_table_factory(db->options, table);
    rocksdb_block_based_options_destroy(table);
}

static void set_merging(rocksdb_options_t *options, const struct db_config *config)
{
    uint64_t files = L0_BYTES_COMPACT / config->write_buffer_bytes;

    if (files < L0_FILES_MIN)
        files = L0_FILES_MIN;
    if (files > L0_FILES_MAX)
        files = L0_FILES_MAX;
    rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1);
    rocksdb_options_set_level0_file_num_compaction_trigger(options, (int)files);
    rocksdb_options_set_level0_slowdown_writes_trigger(options, (int)(files * 2));
    rocksdb_options_set_level0_stop_writes_trigger(options, (int)(files * 3));
    rocksdb_options_set_max_background_jobs(options, (int)config->background_jobs);
}

static void set_rate(struct db *db, const struct db_config *config)
{
    if (config->rate_bytes_per_s == 0)
        return;
    rocksdb_ratelimiter_t *limiter =
        rocksdb_ratelimiter_create((int64_t)config->rate_bytes_per_s, REFILL_US, FAIRNESS);
    rocksdb_options_set_ratelimiter(db->options, limiter);
    rocksdb_ratelimiter_destroy(limiter);
}

static void set_options(struct db *db, const struct db_config *config)
{
    rocksdb_options_t *options = rocksdb_options_create();

    db->options = options;
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_paranoid_checks(options, 1);
    rocksdb_options_set_write_buffer_size(options, config->write_buffer_bytes);
    rocksdb_options_set_max_write_buffer_number(options, MEMTABLES_MAX);
    rocksdb_options_set_arena_block_size(options, ARENA_BYTES);
    rocksdb_options_set_memtable_prefix_bloom_size_ratio(options, MEMTABLE_BLOOM);
    rocksdb_options_set_memtable_whole_key_filtering(options, 1);
    set_merging(options, config);
    rocksdb_options_set_max_open_files(options, (int)config->open_files_max);
    rocksdb_options_set_use_direct_io_for_flush_and_compaction(options, config->direct_io);
    rocksdb_options_set_compression(options, rocksdb_lz4_compression);
    rocksdb_options_set_info_log_level(options, INFO_LOG_WARN);
    rocksdb_options_set_keep_log_file_num(options, 2);
    rocksdb_options_set_max_log_file_size(options, ROCKS_LOG_BYTES);
    rocksdb_options_set_stats_dump_period_sec(options, 0);
    set_rate(db, config);
    set_tables(db, config);
    db->write_options = rocksdb_writeoptions_create();
    rocksdb_writeoptions_disable_WAL(db->write_options, 1);
    db->read_options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_verify_checksums(db->read_options, 1);
    db->cached_options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_verify_checksums(db->cached_options, 1);
    rocksdb_readoptions_set_read_tier(db->cached_options, READ_TIER_MEMORY);
    db->flush_options = rocksdb_flushoptions_create();
    rocksdb_flushoptions_set_wait(db->flush_options, 1);
}

/* ---- open and close ----------------------------------------------------------------------- */

static void db_free(struct db *db)
{
    rocksdb_writeoptions_destroy(db->write_options);
    rocksdb_readoptions_destroy(db->read_options);
    rocksdb_readoptions_destroy(db->cached_options);
    rocksdb_flushoptions_destroy(db->flush_options);
    rocksdb_options_destroy(db->options);
    rocksdb_cache_destroy(db->cache);
    db_draft_free(db->draft);
    free(db->directory);
    pthread_mutex_destroy(&db->lock);
    free(db);
}

/* Gives up, one at a time, what this RocksDB or this file system may lack. True: try again. */
static bool relax(struct db *db, const char *error)
{
    bool direct = rocksdb_options_get_use_direct_io_for_flush_and_compaction(db->options) != 0;
    bool lz4 = rocksdb_options_get_compression(db->options) == rocksdb_lz4_compression;

    if (direct && (strstr(error, "irect I/O") != NULL || strstr(error, "Invalid argument"))) {
        log_event(db->log, LOG_WARN, "db.no_direct_io", LOG_S("error", error));
        rocksdb_options_set_use_direct_io_for_flush_and_compaction(db->options, 0);
        return true;
    }
    if (lz4 && strstr(error, "LZ4") != NULL) {
        log_event(db->log, LOG_WARN, "db.no_compression", LOG_S("error", error));
        rocksdb_options_set_compression(db->options, rocksdb_no_compression);
        return true;
    }
    return false;
}

err db_open(const struct db_config *config, struct db **ret_db, char ret_text[DB_TEXT_BYTES])
{
    struct db *db = mem_zalloc(sizeof *db);
    char *error = NULL;

    db->log = config->log;
    db->directory = strdup(config->directory);
    CHECK(db->directory != NULL);
    CHECK(pthread_mutex_init(&db->lock, NULL) == 0);
    set_options(db, config);
    db->rocks = rocksdb_open(db->options, config->directory, &error);
    while (error != NULL && relax(db, error)) {
        rocksdb_free(error);
        error = NULL;
        db->rocks = rocksdb_open(db->options, config->directory, &error);
    }
    if (error != NULL) {
        snprintf(ret_text, DB_TEXT_BYTES, "%s: %s", config->directory, error);
        err failed = db_read_failed(db, "open", error);
        db_free(db);
        return failed;
    }
    err e = db_pointers_load(db);
    if (e != ERR_OK) {
        snprintf(ret_text, DB_TEXT_BYTES, "%s: a pointer row is damaged", config->directory);
        rocksdb_close(db->rocks);
        db_free(db);
        return e;
    }
    *ret_db = db;
    return ERR_OK;
}

void db_close(struct db *db)
{
    /* Damage was logged; there is no one left to tell. */
    (void)!db_flush(db);
    rocksdb_close(db->rocks);
    db_free(db);
}

/* ---- what it may do, and what it tells --------------------------------------------------------
 */

void db_rest(struct db *db, bool rests)
{
    const char *key = "disable_auto_compactions";
    const char *value = rests ? "true" : "false";
    char *error = NULL;

    rocksdb_set_options(db->rocks, 1, &key, &value, &error);
    if (error == NULL)
        return;
    log_event(db->log, LOG_WARN, "db.rest_failed", LOG_S("error", error));
    rocksdb_free(error);
}

uint64_t db_property(struct db *db, const char *name)
{
    uint64_t value = 0;

    if (rocksdb_property_int(db->rocks, name, &value) == 0)
        return value;
    /* Some numbers it has as text alone, such as files at a level. */
    char *text = rocksdb_property_value(db->rocks, name);
    if (text != NULL)
        value = strtoull(text, NULL, 10);
    rocksdb_free(text);
    return value;
}

static uint64_t file_count(struct db *db)
{
    const rocksdb_livefiles_t *files = rocksdb_livefiles(db->rocks);
    uint64_t count = (uint64_t)rocksdb_livefiles_count(files);

    rocksdb_livefiles_destroy(files);
    return count;
}

void db_stats_get(struct db *db, struct db_stats *ret_stats)
{
    *ret_stats = (struct db_stats){
        .memtable_bytes = db_property(db, "rocksdb.cur-size-all-mem-tables"),
        .cache_bytes = rocksdb_cache_get_usage(db->cache),
        .table_reader_bytes = db_property(db, "rocksdb.estimate-table-readers-mem"),
        .live_bytes = db_property(db, "rocksdb.live-sst-files-size"),
        .files = file_count(db),
        .checkpoints = atomic_load(&db->checkpoints),
        .checkpoint_rows = atomic_load(&db->checkpoint_rows),
        .checkpoint_bytes = atomic_load(&db->checkpoint_bytes),
        .flushes = atomic_load(&db->flushes),
        .gets = atomic_load(&db->gets),
        .cached_gets = atomic_load(&db->cached_gets),
        .ranges = atomic_load(&db->ranges),
    };
}
