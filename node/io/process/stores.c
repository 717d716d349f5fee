#include "node/io/process/stores.h"

#include <stdio.h>
#include <stdlib.h>

#include "node/core/player/meta.h"
#include "runtime/base/check.h"

/* `hurry`: it writes as fast as the disk takes it, since no call is served meanwhile. */
static err open_db(const struct stores_options *options, const char *directory, bool hurry,
                   struct db **ret_db, char ret_text[STORES_TEXT_BYTES])
{
    struct db_config db = db_config_default();
    char text[DB_TEXT_BYTES] = "";

    db.directory = directory;
    db.cache_bytes = options->block_cache_bytes;
    db.write_buffer_bytes = options->config->write_buffer_size;
    db.log = options->log;
    db.rate_bytes_per_s = hurry ? 0 : options->config->database_rate;
    err e = db_open(&db, ret_db, text);
    if (e != ERR_OK)
        snprintf(ret_text, STORES_TEXT_BYTES, "database: %s", text);
    return e;
}

/* Of every shard, what the database has; where that cannot be read, the worker says so later. To be
 * freed. */
static uint64_t *applied_indexes_new(struct db *db, uint32_t shard_count, const bool *lost)
{
    uint64_t *indexes = mem_zalloc(shard_count * sizeof *indexes);
    struct buf row = { 0 };

    for (uint32_t shard = 0; shard < shard_count; shard++) {
        struct meta meta;

        buf_clear(&row);
        meta_init(&meta);
        if (db_load_meta(db, shard, &row) == ERR_OK &&
            meta_decode(buf_slice(&row), &meta) == ERR_OK)
            indexes[shard] = meta.applied_index;
        if (lost != NULL && lost[shard])
            indexes[shard] = UINT64_MAX; /* Nothing of it is replayed. */
        meta_deinit(&meta);
    }
    buf_deinit(&row);
    return indexes;
}

static err open_log(const struct stores_options *options, struct stores *stores, const bool *lost,
                    char ret_text[STORES_TEXT_BYTES])
{
    struct node_log_config log = node_log_config_default();
    uint64_t *applied = applied_indexes_new(stores->db, options->shard_count, lost);

    log.directory = datadir_log_path(options->datadir);
    log.replica_id = datadir_identity_get(options->datadir)->replica_id;
    log.shard_count = options->shard_count;
    log.segment_bytes = (uint32_t)options->config->log_segment_size;
    log.bytes_max = options->config->log_size_max;
    log.log = options->log;
    log.applied_indexes = applied;
    log.lost = lost;
    err e = node_log_open(&log, &stores->log);

    free(applied);
    if (e != ERR_OK)
        snprintf(ret_text, STORES_TEXT_BYTES, "log: %s", err_text(e));
    return e;
}

static void close_db(struct stores *stores)
{
    if (stores->db != NULL)
        db_close(stores->db);
    stores->db = NULL;
}

/* Into a new database, which stores->db is afterwards. */
static err salvage(const struct stores_options *options, struct stores *stores, bool *lost,
                   char ret_text[STORES_TEXT_BYTES])
{
    struct db *salvaged = NULL;

    log_event(options->log, LOG_WARN, "node.salvaging",
              LOG_S("database", datadir_db_path(options->datadir)),
              LOG_N("opens", stores->db != NULL));
    err e = datadir_salvage_begin(options->datadir, ret_text);
    if (e == ERR_OK)
        e = open_db(options, datadir_salvage_path(options->datadir), true, &salvaged, ret_text);
    if (e != ERR_OK)
        return e;
    e = db_salvage(stores->db, salvaged, options->shard_count, lost);
    if (e != ERR_OK)
        snprintf(ret_text, STORES_TEXT_BYTES, "salvage of the database: %s", err_text(e));
    close_db(stores);
    stores->db = salvaged;
    return e;
}

/* The log knows what is lost, durably; so the new database may take the place of the old one. */
static err end_salvage(const struct stores_options *options, struct stores *stores,
                       char ret_text[STORES_TEXT_BYTES])
{
    close_db(stores);
    err e = datadir_salvage_switch(options->datadir, ret_text);

    if (e == ERR_OK)
        e = open_db(options, datadir_db_path(options->datadir), false, &stores->db, ret_text);
    return e;
}

err stores_open(const struct stores_options *options, struct stores *ret_stores,
                char ret_text[STORES_TEXT_BYTES])
{
    bool *lost = NULL;
    err e = open_db(options, datadir_db_path(options->datadir), false, &ret_stores->db, ret_text);

    if (e == ERR_CORRUPT)
        e = datadir_note_damage(options->datadir);
    if (e != ERR_OK)
        return e;
    if (datadir_damage_get(options->datadir) == DATADIR_DAMAGED) {
        lost = mem_zalloc(options->shard_count * sizeof *lost);
        e = salvage(options, ret_stores, lost, ret_text);
    }
    if (e == ERR_OK)
        e = open_log(options, ret_stores, lost, ret_text);
    if (e == ERR_OK && lost != NULL)
        e = end_salvage(options, ret_stores, ret_text);
    free(lost);
    return e;
}
