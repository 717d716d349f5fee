#include "node/core/mergeable/record.h"

#include <stdlib.h>

#include "runtime/base/check.h"

#define FORMAT 1u
/* What the shortest cell takes. */
#define CELL_BYTES_MIN 28u

static void head_encode(const struct merge_record *record, struct buf *out)
{
    buf_put_u8(out, FORMAT);
    buf_put_u8(out, (uint8_t)record->policy);
    buf_put_compact(out, record->erasure);
}

static void cells_encode(const struct merge_record *record, struct buf *out)
{
    buf_put_compact(out, record->count);
    for (uint32_t i = 0; i < record->count; i++) {
        const struct merge_cell *cell = record->cells[i];

        buf_put_u64(out, cell->dot.actor);
        buf_put_compact(out, cell->dot.counter);
        buf_put_u64(out, cell->hlc);
        buf_put_compact(out, cell->expires_ms);
        buf_put_u64(out, cell->op);
        buf_put_u8(out, (uint8_t)cell->path_size);
        buf_append(out, cell->bytes, cell->path_size);
        buf_put_compact(out, cell->value_size);
        buf_append(out, cell->bytes + cell->path_size, cell->value_size);
    }
}

void merge_record_encode(const struct merge_record *record, struct buf *out)
{
    head_encode(record, out);
    causal_encode(&record->context, out);
    causal_encode(&record->recent, out);
    cells_encode(record, out);
}

struct hash128 merge_record_digest(const struct merge_record *record)
{
    struct buf bytes = { 0 };

    head_encode(record, &bytes);
    cells_encode(record, &bytes);
    struct hash128 digest = hash_u128(buf_slice(&bytes));

    buf_deinit(&bytes);
    return digest;
}

/* NULL: malformed. */
static struct merge_cell *cell_decode(struct reader *reader)
{
    struct merge_cell_form form = { 0 };

    form.dot.actor = read_u64(reader);
    form.dot.counter = read_compact(reader);
    form.hlc = read_u64(reader);
    form.expires_ms = read_compact(reader);
    form.op = read_u64(reader);
    form.path = read_raw(reader, read_u8(reader));
    uint64_t size = read_compact(reader);

    if (reader->bad || size > MERGE_VALUE_BYTES_MAX)
        return NULL;
    form.value = read_raw(reader, (size_t)size);
    if (reader->bad || form.dot.actor == 0 || form.dot.counter == 0 ||
        form.dot.counter > MCLOCK_COUNTER_MAX)
        return NULL;
    return merge_cell_new(&form);
}

static bool follows(const struct merge_cell *before, const struct merge_cell *cell)
{
    int order = slice_compare(merge_cell_path(before), merge_cell_path(cell));

    return order < 0 || (order == 0 && merge_dot_compare(before->dot, cell->dot) < 0);
}

static err cells_decode(struct reader *reader, struct merge_record *record)
{
    uint64_t count = read_compact(reader);

    if (reader->bad || count > MERGE_CELLS_MAX || count * CELL_BYTES_MIN > reader_left(reader))
        return ERR_CORRUPT;
    record->capacity = (uint32_t)count;
    if (count > 0)
        record->cells = mem_alloc(count * sizeof(struct merge_cell *));
    for (uint64_t i = 0; i < count; i++) {
        struct merge_cell *cell = cell_decode(reader);

        if (cell == NULL)
            return ERR_CORRUPT;
        record->cells[record->count++] = cell;
        if (i > 0 && !follows(record->cells[i - 1], cell))
            return ERR_CORRUPT;
    }
    return ERR_OK;
}

/* Dots that are, where a context also has "all". */
static err recent_decode(struct reader *reader, struct causal *ret_recent)
{
    if (causal_decode(reader, ret_recent) != ERR_OK)
        return ERR_CORRUPT;
    for (uint32_t i = 0; i < ret_recent->count; i++)
        if (ret_recent->entries[i].upto > MCLOCK_COUNTER_MAX)
            return ERR_CORRUPT;
    return ERR_OK;
}

err merge_record_decode(struct reader *reader, struct merge_record *ret_record)
{
    struct merge_record record = { 0 };
    uint8_t format = read_u8(reader), policy = read_u8(reader);

    record.erasure = read_compact(reader);
    if (reader->bad || format != FORMAT || policy >= MERGE_POLICY_COUNT)
        return ERR_CORRUPT;
    record.policy = (enum merge_policy)policy;
    if (causal_decode(reader, &record.context) != ERR_OK)
        return ERR_CORRUPT;
    if (recent_decode(reader, &record.recent) != ERR_OK ||
        cells_decode(reader, &record) != ERR_OK ||
        (record.count > 0 && record.policy == MERGE_POLICY_NONE)) {
        merge_record_deinit(&record);
        return ERR_CORRUPT;
    }
    *ret_record = record;
    return ERR_OK;
}
