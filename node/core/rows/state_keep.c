/* Rows as memory keeps them: in the table, in order, in the lists by which they leave, and fresh
 * ones. */
#include <string.h>

#include "node/core/rows/row_key.h"
#include "node/core/rows/state_row.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"

#define HEAP_BYTES_MIN  32u
#define ROW_PLACE_BYTES 32u /* Its slot in a table that is half full. */

/* What an allocation takes from a heap that rounds to 16 and keeps 8 of its own. */
static size_t heap_bytes(size_t size)
{
    size_t bytes = (size + 8 + 15) / 16 * 16;
    return bytes < HEAP_BYTES_MIN ? HEAP_BYTES_MIN : bytes;
}

/* The memory a row costs, not the bytes it says: for a short row that is several times more. */
size_t row_bytes(const struct row *row)
{
    size_t value = row->value != NULL ? heap_bytes(sizeof *row->value + row->value->size) : 0;
    return ROW_PLACE_BYTES + heap_bytes(sizeof *row + row->key_size) + value;
}

/* Like blob_new and blob_unref, with memory of the state's own. */
struct blob *state_value_new(struct state *state, struct slice bytes)
{
    CHECK(bytes.size <= STATE_VALUE_BYTES_MAX);
    struct blob *value = row_pool_take(&state->pool, sizeof *value + bytes.size);
    value->refs = 1;
    value->size = (uint32_t)bytes.size;
    if (bytes.size > 0)
        memcpy(value->bytes, bytes.data, bytes.size);
    return value;
}

void state_value_unref(struct state *state, struct blob *value)
{
    if (value == NULL)
        return;
    CHECK(value->refs > 0);
    if (--value->refs == 0)
        row_pool_give(&state->pool, value, sizeof *value + value->size);
}

void state_row_free(void *context, struct row *row)
{
    struct state *state = context;

    state_value_unref(state, row->value);
    row_pool_give(&state->pool, row, sizeof *row + row->key_size);
}

bool state_is_aged(const struct row *row)
{
    return row->value != NULL && table_of(row_slice(row))->drop == TABLE_DROP_AGE;
}

/* What is known to be absent is listed by use where its table goes by age or size. Hardly any
 * operation looks at history once it is written: it leaves memory first, or each checkpoint's would
 * push out the players in use. So do items that were not looked at yet. */
enum drop_kind state_drop_kind(const struct row *row, bool used)
{
    switch ((enum table_drop)table_of(row_slice(row))->drop) {
    case TABLE_DROP_NEVER:
        return DROP_NONE;
    case TABLE_DROP_FIRST:
        return DROP_FIRST;
    case TABLE_DROP_UNUSED:
        return used ? DROP_USED : DROP_FIRST;
    case TABLE_DROP_AGE:
        return row->value != NULL ? DROP_AGED : DROP_USED;
    case TABLE_DROP_LARGE:
        return row->value != NULL ? DROP_LARGE : DROP_USED;
    case TABLE_DROP_USE:
        break;
    }
    return DROP_USED;
}

static void list_remove(struct state *state, struct row *row)
{
    if (row->listed == DROP_NONE)
        return;
    struct drop_list *list = &state->drops[row->listed];
    *(row->older != NULL ? &row->older->newer : &list->oldest) = row->newer;
    *(row->newer != NULL ? &row->newer->older : &list->newest) = row->older;
    CHECK(list->bytes >= row_bytes(row));
    list->bytes -= row_bytes(row);
    row->older = NULL;
    row->newer = NULL;
    row->listed = DROP_NONE;
}

static void list_add(struct state *state, struct row *row, bool used)
{
    enum drop_kind kind = state_drop_kind(row, used);

    if (row->listed != DROP_NONE || kind == DROP_NONE)
        return;
    row->listed = (uint8_t)kind;
    struct drop_list *list = &state->drops[row->listed];
    row->older = list->newest;
    *(row->older != NULL ? &row->older->newer : &list->oldest) = row;
    list->newest = row;
    list->bytes += row_bytes(row);
}

void state_row_use(struct state *state, struct row *row)
{
    if (row->listed == DROP_NONE || row->listed == DROP_AGED ||
        (row->newer == NULL && row->listed != DROP_FIRST))
        return;
    list_remove(state, row);
    list_add(state, row, true);
}

struct row *state_row_make(struct state *state, struct slice key, bool *ret_made)
{
    CHECK(key.size > 0 && key.size <= STATE_KEY_BYTES_MAX);
    uint64_t hash = hash_u64(key);
    struct row *row = row_table_find(&state->table, key, hash);

    *ret_made = row == NULL;
    if (row != NULL)
        return row;
    row = row_pool_take(&state->pool, sizeof *row + key.size);
    *row = (struct row){
        .hash = hash,
        .dirty_place = DIRTY_NONE,
        .key_size = (uint16_t)key.size,
    };
    memcpy(row->key, key.data, key.size);
    row_table_add(&state->table, row);
    if (order_has(state, key))
        order_add(state, row);
    list_add(state, row, false);
    state->stats.bytes += row_bytes(row);
    struct fresh *fresh = state_fresh(state, key);
    if (fresh != NULL)
        fresh->row_count++;
    return row;
}

void state_row_drop(struct state *state, struct row *row)
{
    CHECK(row->dirty_place == DIRTY_NONE);
    CHECK(!row->frozen);
    list_remove(state, row);
    if (row->ordered)
        order_remove(state, row);
    row_table_remove(&state->table, row);
    CHECK(state->stats.bytes >= row_bytes(row));
    state->stats.bytes -= row_bytes(row);
    struct fresh *fresh = state_fresh(state, row_slice(row));
    if (fresh != NULL)
        fresh->row_count--;
    if (state_is_aged(row))
        state->aged_bytes -= row_bytes(row);
    state_row_free(state, row);
}

void state_row_set_value(struct state *state, struct row *row, struct blob *value)
{
    size_t before = row_bytes(row);
    bool dirty = row->dirty_place != DIRTY_NONE;

    list_remove(state, row);
    if (state_is_aged(row))
        state->aged_bytes -= before;
    row->value = value;
    size_t after = row_bytes(row);
    if (state_is_aged(row))
        state->aged_bytes += after;
    state->stats.bytes = state->stats.bytes + after - before;
    if (dirty)
        state->stats.dirty_bytes = state->stats.dirty_bytes + after - before;
    else
        list_add(state, row, false);
}

void state_row_set_dirty(struct state *state, struct row *row)
{
    if (row->dirty_place != DIRTY_NONE)
        return;
    list_remove(state, row);
    if (state->dirty_count == state->dirty_capacity) {
        state->dirty_capacity = state->dirty_capacity > 0 ? state->dirty_capacity * 2 : 256;
        state->dirty = mem_realloc(state->dirty, sizeof(struct row *) * state->dirty_capacity);
    }
    row->dirty_place = state->dirty_count;
    state->dirty[state->dirty_count++] = row;
    state->stats.dirty_bytes += row_bytes(row);
}

void state_row_set_clean(struct state *state, struct row *row)
{
    if (row->dirty_place == DIRTY_NONE)
        return;
    CHECK(row->dirty_place < state->dirty_count);
    CHECK(state->dirty[row->dirty_place] == row);
    struct row *last = state->dirty[--state->dirty_count];
    state->dirty[row->dirty_place] = last;
    last->dirty_place = row->dirty_place;
    row->dirty_place = DIRTY_NONE;
    CHECK(state->stats.dirty_bytes >= row_bytes(row));
    state->stats.dirty_bytes -= row_bytes(row);
    if (!row->frozen)
        list_add(state, row, false);
}

bool state_miss_is_absent(const struct state *state, struct slice key)
{
    switch ((enum table_miss)table_of(key)->miss) {
    case TABLE_MISS_ABSENT:
        return true;
    case TABLE_MISS_ABOVE:
        return row_operation_ms(key) > state->operations_known_ms;
    case TABLE_MISS_LOAD:
        break;
    }
    return false;
}

struct fresh *state_fresh(struct state *state, struct slice key)
{
    uint8_t run = table_of(key)->run;

    return run > 0 ? &state->fresh[run - 1] : NULL;
}

/* Whatever is found of this key is older: see put_fresh, and who else unpacks first. */
static struct undo unpack(struct state *state, struct run_record *record)
{
    bool made;
    struct row *row = state_row_make(state, run_key(record), &made);
    struct undo undo = {
        .row = row,
        .value = row->value,
        .was_dirty = row->dirty_place != DIRTY_NONE,
        .was_missing = made,
        .was_forgotten = row->forgotten,
    };
    struct slice value = { run_value(record)->bytes, run_value(record)->size };

    state_row_set_dirty(state, row);
    state_row_set_value(state, row, state_value_new(state, value));
    return undo;
}

static void unpack_first(struct state *state, const struct run *run, uint32_t count)
{
    struct run_cursor cursor = { 0 };

    for (uint32_t i = 0; i < count; i++) {
        struct undo done = unpack(state, run_next(run, &cursor));
        state_value_unref(state, done.value);
    }
}

static bool is_of(struct state *state, const struct undo *undo, const struct fresh *fresh)
{
    return undo->record != NULL && state_fresh(state, run_key(undo->record)) == fresh;
}

static void unpack_run(struct state *state, struct fresh *fresh)
{
    uint32_t open = 0;

    for (uint32_t i = 0; i < state->undo_count; i++)
        open += is_of(state, &state->undo[i], fresh);
    CHECK(open <= fresh->run.count);
    unpack_first(state, &fresh->run, fresh->run.count - open);
    for (uint32_t i = 0; i < state->undo_count; i++) {
        if (is_of(state, &state->undo[i], fresh))
            state->undo[i] = unpack(state, state->undo[i].record);
    }
    CHECK(state->stats.bytes >= fresh->run.bytes);
    CHECK(state->stats.dirty_bytes >= fresh->run.bytes);
    state->stats.bytes -= fresh->run.bytes;
    state->stats.dirty_bytes -= fresh->run.bytes;
    run_clear(&fresh->run);
}

void state_unpack(struct state *state, struct slice key)
{
    struct fresh *fresh = state_fresh(state, key);

    if (fresh == NULL)
        return;
    if (fresh->frozen.count > 0 && !fresh->frozen_unpacked) {
        unpack_first(state, &fresh->frozen, fresh->frozen.count);
        fresh->frozen_unpacked = true;
    }
    if (fresh->run.count > 0)
        unpack_run(state, fresh);
}
