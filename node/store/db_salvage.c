/* What can be read of a damaged database, shard by shard, goes to a new one. */
#include "node/store/db_private.h"

#include "runtime/base/check.h"

#define PAGE_BYTES (1024u * 1024u)

static void put_row(rocksdb_writebatch_t *batch, struct buf *key, uint16_t prefix,
                    const struct shard_row *row)
{
    db_put_key(key, prefix, row->key);
    rocksdb_writebatch_put(batch, (const char *)key->data, key->size, (const char *)row->value.data,
                           row->value.size);
}

static err write_page(struct db *to, uint32_t shard, const struct db_rows *rows)
{
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    struct buf key = { 0 };

    for (uint32_t i = 0; i < rows->count; i++)
        put_row(batch, &key, db_prefix(to, shard), &rows->rows[i]);
    err e = db_write_batch(to, batch, "salvage");
    rocksdb_writebatch_destroy(batch);
    buf_deinit(&key);
    return e;
}

/* ERR_FULL: of the new database; all else says that this shard cannot be read. */
static err copy_rows(const struct db_view *view, struct db *to, uint32_t shard)
{
    struct buf after = { 0 };
    bool complete = false;
    err e = ERR_OK;

    while (e == ERR_OK && !complete) {
        struct db_rows rows = { 0 };

        e = db_view_page(view, buf_slice(&after), PAGE_BYTES, &rows);
        if (e == ERR_OK && rows.count > 0) {
            struct slice last = rows.rows[rows.count - 1].key;

            buf_clear(&after);
            buf_append(&after, last.data, last.size);
            e = write_page(to, shard, &rows);
        }
        complete = rows.complete;
        db_rows_deinit(&rows);
    }
    buf_deinit(&after);
    return e;
}

static err copy_shard(struct db *damaged, struct db *to, uint32_t shard)
{
    if (db_reset_due(damaged, shard))
        return ERR_CORRUPT; /* What counts here is not known without the log. */
    struct db_view *view = db_view_open(damaged, shard);
    struct buf meta_row = { 0 };
    err e = db_view_meta(view, &meta_row);

    if (e == ERR_OK)
        e = copy_rows(view, to, shard);
    else if (e == ERR_NOT_FOUND)
        e = ERR_OK;
    buf_deinit(&meta_row);
    db_view_close(view);
    return e;
}

err db_salvage(struct db *damaged, struct db *to, uint32_t shard_count, bool *ret_lost)
{
    uint32_t lost = 0;

    for (uint32_t i = 0; i < shard_count; i++) {
        err e = damaged != NULL ? copy_shard(damaged, to, i) : ERR_CORRUPT;

        ret_lost[i] = e != ERR_OK;
        lost += ret_lost[i];
        if (e != ERR_OK && e != ERR_FULL)
            e = db_drop_shard(to, i);
        if (e == ERR_FULL)
            return e;
    }
    log_event(to->log, LOG_WARN, "db.salvaged", LOG_N("shards", shard_count - lost),
              LOG_N("lost", lost));
    return db_flush(to);
}
