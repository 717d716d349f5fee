#include "node/rpc/fixture_stored.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

void stored_rows_deinit(struct stored_rows *rows)
{
    for (uint32_t i = 0; i < rows->count; i++) {
        buf_deinit(&rows->list[i].key);
        buf_deinit(&rows->list[i].value);
    }
    free(rows->list);
    *rows = (struct stored_rows){ 0 };
}

static struct stored_row *find(const struct stored_rows *rows, struct slice key)
{
    for (uint32_t i = 0; i < rows->count; i++) {
        if (slice_equal(buf_slice(&rows->list[i].key), key))
            return &rows->list[i];
    }
    return NULL;
}

static struct stored_row *add(struct stored_rows *rows, struct slice key)
{
    if (rows->count == rows->capacity) {
        rows->capacity = rows->capacity > 0 ? rows->capacity * 2 : 64;
        rows->list = mem_realloc(rows->list, sizeof *rows->list * rows->capacity);
    }
    struct stored_row *row = &rows->list[rows->count++];
    *row = (struct stored_row){ 0 };
    buf_append(&row->key, key.data, key.size);
    return row;
}

void stored_rows_lose(struct stored_rows *rows, struct slice key)
{
    struct stored_row *row = find(rows, key);

    CHECK(row != NULL);
    buf_deinit(&row->key);
    buf_deinit(&row->value);
    *row = rows->list[--rows->count];
}

static void store(struct stored_rows *rows, const struct state_write *write)
{
    struct stored_row *row = find(rows, write->key);

    if (write->value == NULL) {
        if (row != NULL)
            stored_rows_lose(rows, write->key);
        return;
    }
    if (row == NULL)
        row = add(rows, write->key);
    buf_clear(&row->value);
    buf_append(&row->value, write->value->bytes, write->value->size);
}

void stored_rows_checkpoint(struct stored_rows *rows, struct shard *shard)
{
    struct shard_checkpoint checkpoint;

    CHECK(shard_checkpoint_begin(shard, &checkpoint));
    for (uint32_t i = 0; i < checkpoint.write_count; i++)
        store(rows, &checkpoint.writes[i]);
    shard_checkpoint_end(shard, true);
    buf_deinit(&checkpoint.meta_row);
    shard_evict(shard, 0);
}

struct shard_row stored_rows_find(const struct stored_rows *rows, struct slice key)
{
    const struct stored_row *row = find(rows, key);

    if (row == NULL)
        return (struct shard_row){ .key = key, .absent = true };
    return (struct shard_row){ .key = key, .value = buf_slice(&row->value) };
}

static int by_key(const void *a, const void *b)
{
    return slice_compare(((const struct shard_row *)a)->key, ((const struct shard_row *)b)->key);
}

uint32_t stored_rows_range(const struct stored_rows *rows, const struct state_range *range,
                           struct shard_row *ret_rows, uint32_t rows_max)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < rows->count; i++) {
        const struct stored_row *row = &rows->list[i];
        struct slice key = buf_slice(&row->key);
        if (key.size < range->prefix.size ||
            memcmp(key.data, range->prefix.data, range->prefix.size) != 0 ||
            slice_compare(key, range->after) <= 0)
            continue;
        CHECK(count < rows_max && count < range->limit);
        ret_rows[count++] = (struct shard_row){ .key = key, .value = buf_slice(&row->value) };
    }
    if (count > 0)
        qsort(ret_rows, count, sizeof *ret_rows, by_key);
    return count;
}
