/*
 * Snapshots in the database: a view that a source reads page by page, and key generations, so that
 * the rows which a target puts aside become the shard's by one write. docs/membership.md.
 *
 * A pointer row (DB_POINTER_PREFIX + shard, 'g') says which generation of a shard counts, and
 * whether its log is to be emptied. Without one: generation 0, and nothing is due.
 */
#include <stdlib.h>

#include "node/store/db_private.h"
#include "runtime/base/check.h"

#define POINTER_BYTES 2u

static void put_pointer(rocksdb_writebatch_t *batch, uint32_t shard, uint8_t generation,
                        bool reset_due)
{
    uint8_t value[POINTER_BYTES] = { generation, reset_due };
    struct buf key = { 0 };

    db_put_key(&key, (uint16_t)(DB_POINTER_PREFIX + shard), SLICE_LITERAL("g"));
    rocksdb_writebatch_put(batch, (const char *)key.data, key.size, (const char *)value,
                           sizeof value);
    buf_deinit(&key);
}

err db_pointers_load(struct db *db)
{
    for (uint32_t shard = 0; shard < DB_SHARDS_MAX; shard++) {
        struct buf key = { 0 };
        char *error = NULL;
        size_t size = 0;

        db_put_key(&key, (uint16_t)(DB_POINTER_PREFIX + shard), SLICE_LITERAL("g"));
        char *value = rocksdb_get(db->rocks, db->read_options, (const char *)key.data, key.size,
                                  &size, &error);
        buf_deinit(&key);
        if (error != NULL)
            return db_read_failed(db, "pointer row", error);
        if (value == NULL)
            continue;
        bool good = size == POINTER_BYTES && (uint8_t)value[0] < DB_GENERATIONS;
        if (good) {
            atomic_store(&db->generations[shard], (uint8_t)value[0]);
            atomic_store(&db->reset_due[shard], value[1] != 0);
        }
        rocksdb_free(value);
        if (!good)
            return ERR_CORRUPT;
    }
    return ERR_OK;
}

static uint8_t staged_generation(const struct db *db, uint32_t shard)
{
    return (uint8_t)((atomic_load(&db->generations[shard]) + 1u) % DB_GENERATIONS);
}

static uint16_t staged_prefix(const struct db *db, uint32_t shard)
{
    return db_prefix_of(staged_generation(db, shard), shard);
}

bool db_stage_is_empty(struct db *db, uint32_t shard)
{
    struct db_rows rows = { 0 };
    err e =
        db_read_page(db,
                     &(struct db_page){
                         .prefix_number = staged_prefix(db, shard), .rows_max = 1, .bytes_max = 1 },
                     &rows);
    bool empty = e == ERR_OK && rows.count == 0;

    db_rows_deinit(&rows);
    return empty;
}

err db_stage_begin(struct db *db, uint32_t shard)
{
    if (db_stage_is_empty(db, shard))
        return ERR_OK; /* No mark of a range for every shard at every start. */
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();

    db_drop_prefix(batch, staged_prefix(db, shard));
    err e = db_write_batch(db, batch, "drop of staged rows");
    rocksdb_writebatch_destroy(batch);
    return e;
}

err db_stage_put(struct db *db, uint32_t shard, struct slice rows)
{
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    uint16_t prefix = staged_prefix(db, shard);
    struct reader reader = reader_from(rows);
    struct buf key = { 0 };
    struct slice row_key, value;

    while (snapshot_rows_next(&reader, &row_key, &value)) {
        db_put_key(&key, prefix, row_key);
        rocksdb_writebatch_put(batch, (const char *)key.data, key.size, (const char *)value.data,
                               value.size);
    }
    CHECK(!reader.bad);
    buf_deinit(&key);
    err e = db_write_batch(db, batch, "rows of a snapshot");
    rocksdb_writebatch_destroy(batch);
    return e;
}

err db_stage_switch(struct db *db, uint32_t shard, struct slice meta_row)
{
    static const uint8_t meta_key = TABLE_META;
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    uint8_t generation = staged_generation(db, shard);
    struct buf key = { 0 };

    db_put_key(&key, staged_prefix(db, shard), (struct slice){ &meta_key, 1 });
    rocksdb_writebatch_put(batch, (const char *)key.data, key.size, (const char *)meta_row.data,
                           meta_row.size);
    buf_deinit(&key);
    put_pointer(batch, shard, generation, true);
    err e = db_write_batch(db, batch, "switch to a snapshot");
    rocksdb_writebatch_destroy(batch);
    if (e == ERR_OK)
        e = db_flush(db);
    if (e != ERR_OK)
        return e;
    atomic_store(&db->generations[shard], generation);
    atomic_store(&db->reset_due[shard], true);
    return ERR_OK;
}

err db_stage_finish(struct db *db, uint32_t shard)
{
    uint8_t generation = atomic_load(&db->generations[shard]);
    uint8_t before = (uint8_t)((generation + DB_GENERATIONS - 1u) % DB_GENERATIONS);
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();

    put_pointer(batch, shard, generation, false);
    db_drop_prefix(batch, db_prefix_of(before, shard));
    err e = db_write_batch(db, batch, "end of a switch");
    rocksdb_writebatch_destroy(batch);
    if (e == ERR_OK)
        e = db_flush(db);
    if (e == ERR_OK)
        atomic_store(&db->reset_due[shard], false);
    return e;
}

bool db_reset_due(const struct db *db, uint32_t shard)
{
    return atomic_load(&db->reset_due[shard]);
}

/* ---- views -------------------------------------------------------------------------------- */

struct db_view {
    struct db *db;
    const rocksdb_snapshot_t *snapshot;
    uint16_t prefix;
};

struct db_view *db_view_open(struct db *db, uint32_t shard)
{
    struct db_view *view = mem_alloc(sizeof *view);

    *view = (struct db_view){
        .db = db,
        .snapshot = rocksdb_create_snapshot(db->rocks),
        .prefix = db_prefix(db, shard),
    };
    return view;
}

void db_view_close(struct db_view *view)
{
    if (view == NULL)
        return;
    rocksdb_release_snapshot(view->db->rocks, view->snapshot);
    free(view);
}

err db_view_page(const struct db_view *view, struct slice after, uint32_t bytes_max,
                 struct db_rows *ret_rows)
{
    return db_read_page(view->db,
                        &(struct db_page){ .prefix_number = view->prefix,
                                           .after = after,
                                           .rows_max = DB_PAGE_ROWS_MAX,
                                           .bytes_max = bytes_max,
                                           .snapshot = view->snapshot },
                        ret_rows);
}

err db_view_meta(const struct db_view *view, struct buf *ret_row)
{
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();
    const uint8_t key[] = { (uint8_t)(view->prefix >> 8), (uint8_t)view->prefix, TABLE_META };
    char *error = NULL;
    size_t size = 0;

    rocksdb_readoptions_set_verify_checksums(options, 1);
    rocksdb_readoptions_set_snapshot(options, view->snapshot);
    char *value =
        rocksdb_get(view->db->rocks, options, (const char *)key, sizeof key, &size, &error);
    rocksdb_readoptions_destroy(options);
    if (error != NULL)
        return db_read_failed(view->db, "meta row of a view", error);
    if (value == NULL)
        return ERR_NOT_FOUND;
    buf_append(ret_row, value, size);
    rocksdb_free(value);
    return ERR_OK;
}
