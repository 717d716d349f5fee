/* Reading rows: points, pages, a shard's meta row, everything. */
#include <stdlib.h>
#include <string.h>

#include "node/store/db_private.h"
#include "runtime/base/check.h"

/* Rows gathered: where their bytes are is final only once the memory stops growing. */
struct gathered_row {
    size_t key_at, key_size;
    size_t value_at, value_size;
    bool absent;
};

struct gather {
    struct gathered_row *rows;
    uint32_t count, capacity;
    struct buf memory;
};

static void gather_deinit(struct gather *gather)
{
    free(gather->rows);
    buf_deinit(&gather->memory);
}

/* value.data NULL: absent. */
static void gather_add(struct gather *gather, struct slice key, struct slice value)
{
    if (gather->count == gather->capacity) {
        gather->capacity = gather->capacity == 0 ? 16 : gather->capacity * 2;
        gather->rows = mem_realloc(gather->rows, gather->capacity * sizeof *gather->rows);
    }
    struct gathered_row *row = &gather->rows[gather->count++];

    *row = (struct gathered_row){ .key_at = gather->memory.size, .key_size = key.size };
    if (key.size > 0)
        buf_append(&gather->memory, key.data, key.size);
    row->value_at = gather->memory.size;
    row->value_size = value.size;
    row->absent = value.data == NULL;
    if (value.size > 0)
        buf_append(&gather->memory, value.data, value.size);
}

/* Hands the rows over; the gather is empty then. */
static void gather_finish(struct gather *gather, bool complete, struct db_rows *ret_rows)
{
    static const uint8_t empty[1];
    struct shard_row *rows = mem_alloc(gather->count * sizeof *rows);
    const uint8_t *memory = gather->memory.data == NULL ? empty : gather->memory.data;

    for (uint32_t i = 0; i < gather->count; i++) {
        const struct gathered_row *row = &gather->rows[i];

        rows[i] = (struct shard_row){
            .key = { memory + row->key_at, row->key_size },
            .value = { row->absent ? NULL : memory + row->value_at, row->value_size },
            .absent = row->absent,
        };
    }
    *ret_rows = (struct db_rows){
        .rows = rows, .count = gather->count, .complete = complete, .memory = gather->memory
    };
    gather->memory = (struct buf){ 0 };
    gather_deinit(gather);
}

void db_rows_deinit(struct db_rows *rows)
{
    free(rows->rows);
    buf_deinit(&rows->memory);
    *rows = (struct db_rows){ 0 };
}

/* ---- points ------------------------------------------------------------------------------- */

struct found {
    rocksdb_pinnableslice_t *row; /* NULL: absent. */
    char *error;                  /* RocksDB's, with ERR_NEED. */
};

static err find(struct db *db, const rocksdb_readoptions_t *options, uint16_t prefix,
                struct slice key, struct found *ret_found)
{
    uint8_t whole[DB_SHARD_BYTES + STATE_KEY_BYTES_MAX];

    CHECK(key.size > 0 && key.size <= STATE_KEY_BYTES_MAX);
    whole[0] = (uint8_t)(prefix >> 8);
    whole[1] = (uint8_t)prefix;
    memcpy(whole + DB_SHARD_BYTES, key.data, key.size);
    ret_found->error = NULL;
    ret_found->row = rocksdb_get_pinned(db->rocks, options, (const char *)whole,
                                        DB_SHARD_BYTES + key.size, &ret_found->error);
    return ret_found->error == NULL ? ERR_OK : ERR_NEED;
}

static void gather_found(struct gather *gather, struct slice key,
                         const rocksdb_pinnableslice_t *found)
{
    struct slice value = { 0 };

    if (found != NULL)
        value.data = (const uint8_t *)rocksdb_pinnableslice_value(found, &value.size);
    gather_add(gather, key, value);
}

err db_get_many(struct db *db, uint32_t shard, const struct slice *keys, uint32_t count,
                struct db_rows *ret_rows)
{
    struct gather gather = { 0 };

    atomic_fetch_add(&db->gets, count);
    for (uint32_t i = 0; i < count; i++) {
        struct found found;

        /* One damaged row makes the whole answer unusable. */
        if (find(db, db->read_options, db_prefix(db, shard), keys[i], &found) != ERR_OK) {
            gather_deinit(&gather);
            return db_read_failed(db, "get", found.error);
        }
        gather_found(&gather, keys[i], found.row);
        rocksdb_pinnableslice_destroy(found.row);
    }
    gather_finish(&gather, true, ret_rows);
    return ERR_OK;
}

/* ERR_NEED: "incomplete", or worse; then db_get_many meets it too, and says so. An empty row may be
 * there, but it is also how RocksDB says that a table which may have it is not open
 * (MarkKeyMayExist). */
static err find_cached(struct db *db, uint32_t shard, struct slice key, struct gather *gather)
{
    struct found found;
    size_t size = 1;

    if (find(db, db->cached_options, db_prefix(db, shard), key, &found) != ERR_OK) {
        rocksdb_free(found.error);
        return ERR_NEED;
    }
    if (found.row != NULL)
        (void)rocksdb_pinnableslice_value(found.row, &size);
    if (size > 0)
        gather_found(gather, key, found.row);
    rocksdb_pinnableslice_destroy(found.row);
    return size > 0 ? ERR_OK : ERR_NEED;
}

err db_find_cached(struct db *db, uint32_t shard, const struct slice *keys, uint32_t count,
                   struct db_rows *ret_rows)
{
    struct gather gather = { 0 };
    err e = ERR_OK;

    for (uint32_t i = 0; i < count && e == ERR_OK; i++)
        e = find_cached(db, shard, keys[i], &gather);
    if (e != ERR_OK) {
        gather_deinit(&gather);
        return e;
    }
    atomic_fetch_add(&db->cached_gets, count);
    gather_finish(&gather, true, ret_rows);
    return ERR_OK;
}

err db_load_meta(struct db *db, uint32_t shard, struct buf *ret_row)
{
    static const uint8_t key = TABLE_META;
    struct slice meta_key = { &key, 1 };
    struct db_rows rows = { 0 };
    err e = db_get_many(db, shard, &meta_key, 1, &rows);

    if (e != ERR_OK)
        return e;
    if (rows.rows[0].absent)
        e = ERR_NOT_FOUND;
    else
        buf_append(ret_row, rows.rows[0].value.data, rows.rows[0].value.size);
    db_rows_deinit(&rows);
    return e;
}

/* ---- pages -------------------------------------------------------------------------------- */

/* Least key above every key that begins with `bytes`; empty: there is none. */
static void key_above(const struct buf *prefix, struct buf *ret_above)
{
    buf_clear(ret_above);
    buf_append(ret_above, prefix->data, prefix->size);
    while (ret_above->size > 0 && ret_above->data[ret_above->size - 1] == 0xff)
        ret_above->size--;
    if (ret_above->size > 0)
        ret_above->data[ret_above->size - 1]++;
}

static struct slice iter_key(const rocksdb_iterator_t *iter)
{
    size_t size;
    const char *key = rocksdb_iter_key(iter, &size);

    return (struct slice){ (const uint8_t *)key, size };
}

static struct slice iter_value(const rocksdb_iterator_t *iter)
{
    size_t size;
    const char *value = rocksdb_iter_value(iter, &size);

    return (struct slice){ (const uint8_t *)value, size };
}

/* Moves to the first row of the page. */
static void page_seek(rocksdb_iterator_t *iter, const struct db_page *page,
                      const struct buf *prefix)
{
    struct buf after = { 0 };

    if (slice_compare(page->after, page->prefix) < 0) {
        rocksdb_iter_seek(iter, (const char *)prefix->data, prefix->size);
        return;
    }
    buf_put_u16_be(&after, page->prefix_number);
    if (page->after.size > 0)
        buf_append(&after, page->after.data, page->after.size);
    rocksdb_iter_seek(iter, (const char *)after.data, after.size);
    if (page->after.size > 0 && rocksdb_iter_valid(iter) &&
        slice_equal(iter_key(iter), buf_slice(&after)))
        rocksdb_iter_next(iter);
    buf_deinit(&after);
}

static bool page_walk(rocksdb_iterator_t *iter, const struct db_page *page, struct gather *gather)
{
    while (rocksdb_iter_valid(iter)) {
        struct slice key = iter_key(iter);

        if (gather->count >= page->rows_max || gather->memory.size >= page->bytes_max)
            return false;
        key.data += DB_SHARD_BYTES;
        key.size -= DB_SHARD_BYTES;
        gather_add(gather, key, iter_value(iter));
        rocksdb_iter_next(iter);
    }
    return true;
}

err db_read_page(struct db *db, const struct db_page *page, struct db_rows *ret_rows)
{
    struct gather gather = { 0 };
    struct buf prefix = { 0 };
    struct buf above = { 0 };
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();
    char *error = NULL;
    err e = ERR_OK;

    atomic_fetch_add(&db->ranges, 1);
    buf_put_u16_be(&prefix, page->prefix_number);
    if (page->prefix.size > 0)
        buf_append(&prefix, page->prefix.data, page->prefix.size);
    key_above(&prefix, &above);
    CHECK(above.size > 0);
    rocksdb_readoptions_set_verify_checksums(options, 1);
    rocksdb_readoptions_set_iterate_upper_bound(options, (const char *)above.data, above.size);
    if (page->snapshot != NULL) {
        rocksdb_readoptions_set_snapshot(options, page->snapshot);
        rocksdb_readoptions_set_fill_cache(options, 0);
    }

    rocksdb_iterator_t *iter = rocksdb_create_iterator(db->rocks, options);
    page_seek(iter, page, &prefix);
    bool complete = page_walk(iter, page, &gather);
    /* An iterator that met damage is "not valid" too: it must not pass for the end. */
    rocksdb_iter_get_error(iter, &error);
    rocksdb_iter_destroy(iter);
    rocksdb_readoptions_destroy(options);
    if (error != NULL) {
        e = db_read_failed(db, "range", error);
        gather_deinit(&gather);
    } else {
        gather_finish(&gather, complete, ret_rows);
    }
    buf_deinit(&prefix);
    buf_deinit(&above);
    return e;
}

err db_range(struct db *db, uint32_t shard, const struct state_range *range,
             struct db_rows *ret_rows)
{
    struct db_page page = {
        .prefix_number = db_prefix(db, shard),
        .prefix = range->prefix,
        .after = range->after,
        .rows_max = range->limit < DB_PAGE_ROWS_MAX ? range->limit : DB_PAGE_ROWS_MAX,
        .bytes_max = DB_PAGE_BYTES_MAX,
    };

    return db_read_page(db, &page, ret_rows);
}

err db_load_prefix(struct db *db, uint32_t shard, struct slice prefix, uint32_t rows_max,
                   struct db_rows *ret_rows)
{
    struct db_page page = { .prefix_number = db_prefix(db, shard),
                            .prefix = prefix,
                            .rows_max = rows_max,
                            .bytes_max = SIZE_MAX };
    struct db_rows rows = { 0 };
    err e = db_read_page(db, &page, &rows);

    if (e == ERR_OK && !rows.complete) {
        db_rows_deinit(&rows);
        return ERR_TOO_LARGE;
    }
    if (e == ERR_OK)
        *ret_rows = rows;
    return e;
}
