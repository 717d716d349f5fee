/* What all that goes to RocksDB or comes from it needs: keys, batches, and what a failure means. */
#include "node/store/db_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

/* A file that should be there and is not counts as damage. */
static bool is_damage(const char *error)
{
    return strncmp(error, "Corruption", 10) == 0 || strstr(error, "No such file") != NULL;
}

/* No bytes of ours are in doubt: RocksDB writes them to new files, by itself once there is room. */
static bool is_full(const char *error)
{
    return strstr(error, "No space left") != NULL;
}

static err classify(struct db *db, const char *what, const char *error)
{
    const char *event = "db.failed";
    err e = ERR_IO;

    if (is_damage(error)) {
        event = "db.damaged";
        e = ERR_CORRUPT;
    } else if (is_full(error)) {
        event = "db.full";
        e = ERR_FULL;
    }
    log_event(db->log, LOG_ERROR, event, LOG_S("what", what), LOG_S("error", error));
    if (e != ERR_CORRUPT)
        return e;
    pthread_mutex_lock(&db->lock);
    if (!db->damaged)
        snprintf(db->damage, sizeof db->damage, "%s: %s", what, error);
    db->damaged = true;
    pthread_mutex_unlock(&db->lock);
    return e;
}

err db_read_failed(struct db *db, const char *what, char *error)
{
    err e = classify(db, what, error);

    rocksdb_free(error);
    return e;
}

err db_write_failed(struct db *db, const char *what, char *error)
{
    err e = classify(db, what, error);

    /* What the disk holds after a failed write is unknown: DESIGN section 4. */
    if (e != ERR_CORRUPT && e != ERR_FULL)
        abort();
    rocksdb_free(error);
    return e;
}

bool db_damage(struct db *db, char ret_text[DB_TEXT_BYTES])
{
    pthread_mutex_lock(&db->lock);
    bool damaged = db->damaged;
    memcpy(ret_text, db->damage, DB_TEXT_BYTES);
    pthread_mutex_unlock(&db->lock);
    return damaged;
}

uint16_t db_prefix(const struct db *db, uint32_t shard)
{
    CHECK(shard < DB_SHARDS_MAX);
    return db_prefix_of(atomic_load_explicit(&db->generations[shard], memory_order_relaxed), shard);
}

void db_put_key(struct buf *key, uint16_t prefix, struct slice row_key)
{
    buf_clear(key);
    buf_put_u16_be(key, prefix);
    if (row_key.size > 0)
        buf_append(key, row_key.data, row_key.size);
}

void db_drop_prefix(rocksdb_writebatch_t *batch, uint16_t prefix)
{
    struct buf from = { 0 };
    struct buf to = { 0 };

    db_put_key(&from, prefix, (struct slice){ 0 });
    db_put_key(&to, (uint16_t)(prefix + 1u), (struct slice){ 0 });
    rocksdb_writebatch_delete_range(batch, (const char *)from.data, from.size,
                                    (const char *)to.data, to.size);
    buf_deinit(&from);
    buf_deinit(&to);
}

err db_write_batch(struct db *db, rocksdb_writebatch_t *batch, const char *what)
{
    char *error = NULL;
    size_t size;

    (void)rocksdb_writebatch_data(batch, &size);
    atomic_fetch_add(&db->checkpoint_bytes, size);
    rocksdb_write(db->rocks, db->write_options, batch, &error);
    return error == NULL ? ERR_OK : db_write_failed(db, what, error);
}

err db_drop_shard(struct db *db, uint32_t shard)
{
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();

    db_drop_prefix(batch, db_prefix(db, shard));
    err e = db_write_batch(db, batch, "drop of a shard");
    rocksdb_writebatch_destroy(batch);
    return e;
}

err db_flush(struct db *db)
{
    char *error = NULL;

    atomic_fetch_add(&db->flushes, 1);
    rocksdb_flush(db->rocks, db->flush_options, &error);
    return error == NULL ? ERR_OK : db_write_failed(db, "flush", error);
}
