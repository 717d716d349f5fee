#include "node/core/mergeable/record.h"

#include <stdlib.h>

#include "node/core/mergeable/tally.h"
#include "runtime/base/check.h"

#define FORMAT 1u
/* What the shortest cell takes. */
#define CELL_BYTES_MIN 6u

/* What a cell has beside dot, time, path and value. */
#define HAS_COUNT 1u
#define HAS_OP    2u
#define HAS_END   4u

#define HLC_COUNT_BITS 16u
#define HLC_MS_MAX     (UINT64_MAX >> HLC_COUNT_BITS)

static void head_encode(const struct merge_record *record, struct buf *out)
{
    buf_put_u8(out, FORMAT);
    buf_put_u8(out, (uint8_t)record->policy);
    buf_put_compact(out, record->erasure);
}

/* Which actors made the cells: named once, and then by their place. */
static void actors_of(const struct merge_record *record, struct causal *actors)
{
    for (uint32_t i = 0; i < record->count; i++)
        causal_raise(actors, record->cells[i]->dot.actor, 1);
}

static uint32_t actor_place(const struct causal *actors, uint64_t actor)
{
    uint32_t low = 0, high = actors->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (actors->entries[middle].actor < actor)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void cell_encode(const struct merge_cell *cell, uint32_t actor, uint64_t base_ms,
                        struct buf *out)
{
    uint16_t count = (uint16_t)cell->hlc;

    buf_put_u8(out, (uint8_t)((count != 0 ? HAS_COUNT : 0) | (cell->op != 0 ? HAS_OP : 0) |
                              (cell->expires_ms != 0 ? HAS_END : 0)));
    buf_put_compact(out, actor);
    buf_put_compact(out, cell->dot.counter);
    buf_put_compact(out, (cell->hlc >> HLC_COUNT_BITS) - base_ms);
    if (count != 0)
        buf_put_compact(out, count);
    if (cell->op != 0)
        buf_put_u64(out, cell->op);
    if (cell->expires_ms != 0)
        buf_put_compact(out, cell->expires_ms);
    buf_put_u8(out, (uint8_t)cell->path_size);
    buf_append(out, cell->bytes, cell->path_size);
    buf_put_compact(out, cell->value_size);
    buf_append(out, cell->bytes + cell->path_size, cell->value_size);
}

static void cells_encode(const struct merge_record *record, struct buf *out)
{
    uint64_t base_ms = UINT64_MAX;
    struct causal actors = { 0 };

    buf_put_compact(out, record->count);
    if (record->count == 0)
        return;
    actors_of(record, &actors);
    buf_put_compact(out, actors.count);
    for (uint32_t i = 0; i < actors.count; i++)
        buf_put_u64(out, actors.entries[i].actor);
    for (uint32_t i = 0; i < record->count; i++)
        if (record->cells[i]->hlc >> HLC_COUNT_BITS < base_ms)
            base_ms = record->cells[i]->hlc >> HLC_COUNT_BITS;
    buf_put_compact(out, base_ms);
    for (uint32_t i = 0; i < record->count; i++)
        cell_encode(record->cells[i], actor_place(&actors, record->cells[i]->dot.actor), base_ms,
                    out);
    causal_deinit(&actors);
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

/* What all cells of a record are told by. */
struct shared {
    uint64_t count, base_ms;
    uint64_t *actors; /* Owned. */
};

static err shared_decode(struct reader *reader, uint64_t cells, struct shared *shared)
{
    shared->count = read_compact(reader);
    if (reader->bad || shared->count == 0 || shared->count > cells ||
        shared->count * sizeof(uint64_t) > reader_left(reader))
        return ERR_CORRUPT;
    shared->actors = mem_alloc(shared->count * sizeof *shared->actors);
    for (uint64_t i = 0; i < shared->count; i++) {
        shared->actors[i] = read_u64(reader);
        if (shared->actors[i] == 0 || (i > 0 && shared->actors[i] <= shared->actors[i - 1]))
            return ERR_CORRUPT;
    }
    shared->base_ms = read_compact(reader);
    return reader->bad || shared->base_ms > HLC_MS_MAX ? ERR_CORRUPT : ERR_OK;
}

/* NULL: malformed. */
static struct merge_cell *cell_decode(struct reader *reader, const struct shared *shared)
{
    struct merge_cell_form form = { 0 };
    uint8_t has = read_u8(reader);
    uint64_t actor = read_compact(reader);

    form.dot.counter = read_compact(reader);
    uint64_t after_ms = read_compact(reader), count = has & HAS_COUNT ? read_compact(reader) : 0;

    form.op = has & HAS_OP ? read_u64(reader) : 0;
    form.expires_ms = has & HAS_END ? read_compact(reader) : 0;
    form.path = read_raw(reader, read_u8(reader));
    uint64_t size = read_compact(reader);

    if (reader->bad || size > MERGE_VALUE_BYTES_MAX || has > (HAS_COUNT | HAS_OP | HAS_END) ||
        actor >= shared->count || after_ms > HLC_MS_MAX - shared->base_ms || count > UINT16_MAX ||
        ((has & HAS_COUNT) != 0) != (count != 0) || ((has & HAS_OP) != 0) != (form.op != 0) ||
        ((has & HAS_END) != 0) != (form.expires_ms != 0))
        return NULL;
    form.dot.actor = shared->actors[actor];
    form.hlc = (shared->base_ms + after_ms) << HLC_COUNT_BITS | count;
    form.value = read_raw(reader, (size_t)size);
    if (reader->bad || form.dot.counter == 0 || form.dot.counter > MCLOCK_COUNTER_MAX)
        return NULL;
    return merge_cell_new(&form);
}

static bool follows(const struct merge_cell *before, const struct merge_cell *cell)
{
    int order = slice_compare(merge_cell_path(before), merge_cell_path(cell));

    return order < 0 || (order == 0 && merge_dot_compare(before->dot, cell->dot) < 0);
}

static bool is_sound(enum merge_policy policy, const struct merge_cell *cell)
{
    struct merge_tally tally;

    return policy != MERGE_POLICY_COUNTER ||
           merge_tally_decode(merge_cell_value(cell), &tally) == ERR_OK;
}

static err cells_read(struct reader *reader, uint64_t count, const struct shared *shared,
                      struct merge_record *record)
{
    uint64_t bytes = 0;

    record->capacity = (uint32_t)count;
    record->cells = mem_alloc(count * sizeof(struct merge_cell *));
    for (uint64_t i = 0; i < count; i++) {
        struct merge_cell *cell = cell_decode(reader, shared);

        if (cell == NULL)
            return ERR_CORRUPT;
        record->cells[record->count++] = cell;
        bytes += cell->path_size + cell->value_size;
        if ((i > 0 && !follows(record->cells[i - 1], cell)) || !is_sound(record->policy, cell) ||
            bytes > MERGE_BYTES_MAX)
            return ERR_CORRUPT;
    }
    return ERR_OK;
}

static err cells_decode(struct reader *reader, struct merge_record *record)
{
    uint64_t count = read_compact(reader);
    struct shared shared = { 0 };

    if (reader->bad || count > MERGE_CELLS_MAX || count * CELL_BYTES_MIN > reader_left(reader))
        return ERR_CORRUPT;
    if (count == 0)
        return ERR_OK;
    err e = shared_decode(reader, count, &shared);

    if (e == ERR_OK)
        e = cells_read(reader, count, &shared, record);
    free(shared.actors);
    return e;
}

/* Dots that are, where a context also has "all". */
static err recent_decode(struct reader *reader, struct causal *ret_recent)
{
    if (causal_decode(reader, ret_recent) != ERR_OK || ret_recent->era != 0)
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
