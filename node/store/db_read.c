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

/* RocksDB's arguments for one multi-get. */
struct lookup {
    struct buf keys; /* With the shard, one after another. */
    const char **key_list;
    size_t *key_sizes;
    char **values;
    size_t *value_sizes;
    char **errors;
    uint32_t count;
};

static void lookup_init(struct lookup *lookup, uint32_t shard, const struct slice *keys,
                        uint32_t count)
{
    size_t at = 0;

    *lookup = (struct lookup){ .count = count };
    lookup->key_list = mem_alloc(count * sizeof *lookup->key_list);
    lookup->key_sizes = mem_alloc(count * sizeof *lookup->key_sizes);
    lookup->values = mem_zalloc(count * sizeof *lookup->values);
    lookup->value_sizes = mem_zalloc(count * sizeof *lookup->value_sizes);
    lookup->errors = mem_zalloc(count * sizeof *lookup->errors);
    for (uint32_t i = 0; i < count; i++) {
        CHECK(keys[i].size > 0 && keys[i].size <= STATE_KEY_BYTES_MAX);
        buf_put_u16_be(&lookup->keys, (uint16_t)shard);
        buf_append(&lookup->keys, keys[i].data, keys[i].size);
        lookup->key_sizes[i] = DB_SHARD_BYTES + keys[i].size;
    }
    for (uint32_t i = 0; i < count; i++) {
        lookup->key_list[i] = (const char *)lookup->keys.data + at;
        at += lookup->key_sizes[i];
    }
}

static void lookup_deinit(struct lookup *lookup)
{
    for (uint32_t i = 0; i < lookup->count; i++) {
        rocksdb_free(lookup->values[i]);
        rocksdb_free(lookup->errors[i]);
    }
    free(lookup->key_list);
    free(lookup->key_sizes);
    free(lookup->values);
    free(lookup->value_sizes);
    free(lookup->errors);
    buf_deinit(&lookup->keys);
}

/* The first error, if any: one damaged row makes the whole answer unusable. */
static err lookup_check(struct db *db, struct lookup *lookup)
{
    err e = ERR_OK;

    for (uint32_t i = 0; i < lookup->count && e == ERR_OK; i++) {
        if (lookup->errors[i] == NULL)
            continue;
        e = db_read_failed(db, "get", lookup->errors[i]);
        lookup->errors[i] = NULL;
    }
    return e;
}

static void lookup_run(struct db *db, const rocksdb_readoptions_t *options, struct lookup *lookup)
{
    rocksdb_multi_get(db->rocks, options, lookup->count, lookup->key_list, lookup->key_sizes,
                      lookup->values, lookup->value_sizes, lookup->errors);
}

static void lookup_gather(const struct lookup *lookup, const struct slice *keys,
                          struct db_rows *ret_rows)
{
    struct gather gather = { 0 };

    for (uint32_t i = 0; i < lookup->count; i++)
        gather_add(&gather, keys[i],
                   (struct slice){ (const uint8_t *)lookup->values[i], lookup->value_sizes[i] });
    gather_finish(&gather, true, ret_rows);
}

err db_get_many(struct db *db, uint32_t shard, const struct slice *keys, uint32_t count,
                struct db_rows *ret_rows)
{
    struct lookup lookup;

    atomic_fetch_add(&db->gets, count);
    lookup_init(&lookup, shard, keys, count);
    lookup_run(db, db->read_options, &lookup);
    err e = lookup_check(db, &lookup);
    if (e == ERR_OK)
        lookup_gather(&lookup, keys, ret_rows);
    lookup_deinit(&lookup);
    return e;
}

/* ERR_NEED: "incomplete", or worse; then db_get_many meets it too, and says so. An empty row may be
 * there, but it is also how RocksDB says that a table which may have it is not open
 * (MarkKeyMayExist). */
static err find_cached(struct db *db, uint32_t shard, struct slice key, struct gather *gather)
{
    uint8_t whole[DB_SHARD_BYTES + STATE_KEY_BYTES_MAX];
    struct slice value = { 0 };
    char *error = NULL;

    CHECK(key.size > 0 && key.size <= STATE_KEY_BYTES_MAX);
    whole[0] = (uint8_t)(shard >> 8);
    whole[1] = (uint8_t)shard;
    memcpy(whole + DB_SHARD_BYTES, key.data, key.size);
    rocksdb_pinnableslice_t *found = rocksdb_get_pinned(
        db->rocks, db->cached_options, (const char *)whole, DB_SHARD_BYTES + key.size, &error);
    if (error != NULL) {
        rocksdb_free(error);
        return ERR_NEED;
    }
    if (found != NULL)
        value.data = (const uint8_t *)rocksdb_pinnableslice_value(found, &value.size);
    bool known = found == NULL || value.size > 0;

    if (known)
        gather_add(gather, key, value);
    rocksdb_pinnableslice_destroy(found);
    return known ? ERR_OK : ERR_NEED;
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

struct page {
    uint32_t shard;
    struct slice prefix;
    struct slice after;
    uint32_t rows_max;
    size_t bytes_max;
};

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
static void page_seek(rocksdb_iterator_t *iter, const struct page *page, const struct buf *prefix)
{
    struct buf after = { 0 };

    if (slice_compare(page->after, page->prefix) < 0) {
        rocksdb_iter_seek(iter, (const char *)prefix->data, prefix->size);
        return;
    }
    buf_put_u16_be(&after, (uint16_t)page->shard);
    if (page->after.size > 0)
        buf_append(&after, page->after.data, page->after.size);
    rocksdb_iter_seek(iter, (const char *)after.data, after.size);
    if (page->after.size > 0 && rocksdb_iter_valid(iter) &&
        slice_equal(iter_key(iter), buf_slice(&after)))
        rocksdb_iter_next(iter);
    buf_deinit(&after);
}

static bool page_walk(rocksdb_iterator_t *iter, const struct page *page, struct gather *gather)
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

static err read_page(struct db *db, const struct page *page, struct db_rows *ret_rows)
{
    struct gather gather = { 0 };
    struct buf prefix = { 0 };
    struct buf above = { 0 };
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();
    char *error = NULL;
    err e = ERR_OK;

    atomic_fetch_add(&db->ranges, 1);
    buf_put_u16_be(&prefix, (uint16_t)page->shard);
    if (page->prefix.size > 0)
        buf_append(&prefix, page->prefix.data, page->prefix.size);
    key_above(&prefix, &above);
    CHECK(above.size > 0);
    rocksdb_readoptions_set_verify_checksums(options, 1);
    rocksdb_readoptions_set_iterate_upper_bound(options, (const char *)above.data, above.size);

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
    struct page page = {
        .shard = shard,
        .prefix = range->prefix,
        .after = range->after,
        .rows_max = range->limit < DB_PAGE_ROWS_MAX ? range->limit : DB_PAGE_ROWS_MAX,
        .bytes_max = DB_PAGE_BYTES_MAX,
    };

    return read_page(db, &page, ret_rows);
}

err db_load_prefix(struct db *db, uint32_t shard, struct slice prefix, uint32_t rows_max,
                   struct db_rows *ret_rows)
{
    struct page page = {
        .shard = shard, .prefix = prefix, .rows_max = rows_max, .bytes_max = SIZE_MAX
    };
    struct db_rows rows = { 0 };
    err e = read_page(db, &page, &rows);

    if (e == ERR_OK && !rows.complete) {
        db_rows_deinit(&rows);
        return ERR_TOO_LARGE;
    }
    if (e == ERR_OK)
        *ret_rows = rows;
    return e;
}

err db_verify(struct db *db)
{
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();
    char *error = NULL;

    rocksdb_readoptions_set_verify_checksums(options, 1);
    rocksdb_readoptions_set_fill_cache(options, 0);
    rocksdb_iterator_t *iter = rocksdb_create_iterator(db->rocks, options);
    for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter))
        ;
    rocksdb_iter_get_error(iter, &error);
    rocksdb_iter_destroy(iter);
    rocksdb_readoptions_destroy(options);
    return error == NULL ? ERR_OK : db_read_failed(db, "verification", error);
}
