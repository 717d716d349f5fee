#include "node/core/rows/state.h"

#include <stdlib.h>
#include <string.h>

#include "node/core/rows/rows.h"
#include "node/core/rows/state_row.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"

#define HEAP_BYTES_MIN  32u
#define ROW_PLACE_BYTES 32u /* Its slot in a table that is half full. */

struct slice row_slice(const struct row *row)
{
    return (struct slice){ row->key, row->key_size };
}

struct slice row_value(const struct row *row)
{
    CHECK(row->value != NULL);
    return (struct slice){ row->value->bytes, row->value->size };
}

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

struct state *state_new(uint32_t shard)
{
    struct state *state = mem_zalloc(sizeof *state);
    state->shard = shard;
    state->load_generation = 1;
    return state;
}

static void coverage_deinit(struct coverage *coverage)
{
    buf_deinit(&coverage->prefix);
    buf_deinit(&coverage->after);
    buf_deinit(&coverage->to);
}

/* Like blob_new and blob_unref, with memory of the state's own. */
static struct blob *value_new(struct state *state, struct slice bytes)
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

static void row_free(void *context, struct row *row)
{
    struct state *state = context;

    state_value_unref(state, row->value);
    row_pool_give(&state->pool, row, sizeof *row + row->key_size);
}

void state_free(struct state *state)
{
    if (state == NULL)
        return;
    CHECK(!state->transaction_open);
    if (state->checkpoint_open)
        state_checkpoint_end(state, false);
    for (uint32_t i = 0; i < TABLE_RUNS; i++)
        run_clear(&state->fresh[i].run);
    row_table_deinit(&state->table, row_free, state);
    row_pool_deinit(&state->pool);
    for (uint32_t i = 0; i < COVERAGES_MAX; i++)
        coverage_deinit(&state->coverages[i]);
    free(state->dirty);
    free(state->frozen);
    free(state->writes);
    free(state->undo);
    free(state);
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
    state->stats.bytes -= row_bytes(row);
    struct fresh *fresh = state_fresh(state, row_slice(row));
    if (fresh != NULL)
        fresh->row_count--;
    if (state_is_aged(row))
        state->aged_bytes -= row_bytes(row);
    row_free(state, row);
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
    struct row *last = state->dirty[--state->dirty_count];
    state->dirty[row->dirty_place] = last;
    last->dirty_place = row->dirty_place;
    row->dirty_place = DIRTY_NONE;
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

void state_prefetch(const struct state *state, struct slice key)
{
    row_table_prefetch(&state->table, hash_u64(key));
}

enum state_found state_find(struct state *state, struct slice key, struct slice *ret_value)
{
    CHECK(key.size > 0);
    state_unpack(state, key);
    struct row *row = row_table_find(&state->table, key, hash_u64(key));
    if (row == NULL) {
        if (state_miss_is_absent(state, key))
            return STATE_ABSENT;
        state->stats.misses++;
        return STATE_MISSING;
    }
    state->stats.hits++;
    state_row_use(state, row);
    if (row->value == NULL)
        return STATE_ABSENT;
    *ret_value = row_value(row);
    return STATE_PRESENT;
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
    state_row_set_value(state, row, value_new(state, value));
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

void state_begin(struct state *state)
{
    CHECK(!state->transaction_open);
    CHECK(state->undo_count == 0);
    state->transaction_open = true;
}

void state_observe(struct state *state, struct state_observer observer)
{
    state->observer = observer;
}

static struct slice value_slice(const struct blob *value)
{
    return value != NULL ? (struct slice){ value->bytes, value->size } : (struct slice){ 0 };
}

static void observe(const struct state *state, struct slice key, struct slice before,
                    struct slice after)
{
    if (state->observer.row != NULL)
        state->observer.row(state->observer.context, key, before, after);
}

static struct undo *undo_add(struct state *state)
{
    CHECK(state->transaction_open);
    if (state->undo_count == state->undo_capacity) {
        state->undo_capacity = state->undo_capacity > 0 ? state->undo_capacity * 2 : 32;
        state->undo = mem_realloc(state->undo, sizeof *state->undo * state->undo_capacity);
    }
    return &state->undo[state->undo_count++];
}

static struct row *change(struct state *state, struct slice key, struct blob *value)
{
    bool made;
    struct row *row = state_row_make(state, key, &made);

    observe(state, key, value_slice(row->value), value_slice(value));
    *undo_add(state) = (struct undo){
        .row = row,
        .value = row->value,
        .was_dirty = row->dirty_place != DIRTY_NONE,
        .was_missing = made,
        .was_forgotten = row->forgotten,
    };
    state_row_set_dirty(state, row);
    state_row_set_value(state, row, value);
    return row;
}

/* False: a row of this key is there, and changes like any other. */
static bool put_fresh(struct state *state, struct slice key, struct slice value)
{
    struct fresh *fresh = state_fresh(state, key);

    if (fresh == NULL ||
        (fresh->row_count > 0 && row_table_find(&state->table, key, hash_u64(key)) != NULL))
        return false;
    observe(state, key, (struct slice){ 0 }, value);
    struct run_record *record = run_add(&fresh->run, key, value);
    *undo_add(state) = (struct undo){ .record = record };
    state->stats.bytes += record->size_bytes;
    state->stats.dirty_bytes += record->size_bytes;
    return true;
}

void state_put(struct state *state, struct slice key, struct slice value)
{
    if (!put_fresh(state, key, value))
        (void)change(state, key, value_new(state, value));
}

void state_delete(struct state *state, struct slice key)
{
    state_unpack(state, key);
    (void)change(state, key, NULL);
}

/* A row that memory has may be a deletion that the database lacks yet: only one that it does not
 * know is in neither. */
void state_put_new(struct state *state, struct slice key, struct slice value)
{
    uint64_t row_count = state->table.row_count;
    struct row *row = change(state, key, value_new(state, value));

    if (state->table.row_count > row_count)
        row->unwritten = true;
}

void state_forget(struct state *state, struct slice key)
{
    struct row *row = change(state, key, NULL);

    row->forgotten = row->unwritten;
}

/* Rows put and forgotten leave memory: the database never had them. A row may have been changed
 * more than once. */
static void drop_forgotten(struct state *state)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < state->undo_count; i++) {
        struct row *row = state->undo[i].row;
        if (row == NULL || !row->forgotten)
            continue;
        row->forgotten = false;
        if (row->value == NULL)
            state->undo[count++].row = row;
    }
    for (uint32_t i = 0; i < count; i++) {
        state_row_set_clean(state, state->undo[i].row);
        state_row_drop(state, state->undo[i].row);
    }
}

void state_note(struct state *state, struct slice key, struct slice value)
{
    struct blob *note = value_new(state, value);

    CHECK(key.size == NOTE_KEY_BYTES);
    CHECK(table_of(key)->carried == TABLE_CARRIED_NOWHERE);
    observe(state, key, (struct slice){ 0 }, value);
    *undo_add(state) = (struct undo){ .value = note, .note = { key.data[0], key.data[1] } };
}

static void undo_note(struct state *state, const struct undo *undo)
{
    observe(state, (struct slice){ undo->note, sizeof undo->note }, value_slice(undo->value),
            (struct slice){ 0 });
    state_value_unref(state, undo->value);
}

/* As far as it costs nothing; all of them: state_check. */
static void check_sums(const struct state *state)
{
    CHECK(state->stats.dirty_bytes <= state->stats.bytes);
    CHECK(state->aged_bytes <= state->stats.bytes);
    CHECK(state->dirty_count <= state->table.row_count);
    CHECK(state->undo_count == 0);
}

void state_commit(struct state *state)
{
    CHECK(state->transaction_open);
    for (uint32_t i = 0; i < state->undo_count; i++)
        state_value_unref(state, state->undo[i].value);
    drop_forgotten(state);
    state->undo_count = 0;
    state->transaction_open = false;
    check_sums(state);
}

uint32_t state_mark(const struct state *state)
{
    CHECK(state->transaction_open);
    return state->undo_count;
}

static void take_back(struct state *state, const struct run_record *record)
{
    struct fresh *fresh = state_fresh(state, run_key(record));

    state->stats.bytes -= record->size_bytes;
    state->stats.dirty_bytes -= record->size_bytes;
    run_remove(&fresh->run, record);
}

void state_rollback_to(struct state *state, uint32_t mark)
{
    CHECK(state->transaction_open);
    while (state->undo_count > mark) {
        struct undo *undo = &state->undo[--state->undo_count];
        if (undo->record != NULL) {
            observe(state, run_key(undo->record), value_slice(run_value(undo->record)),
                    (struct slice){ 0 });
            take_back(state, undo->record);
            continue;
        }
        struct row *row = undo->row;
        if (row == NULL) {
            undo_note(state, undo);
            continue;
        }
        struct blob *value = row->value;
        observe(state, row_slice(row), value_slice(value), value_slice(undo->value));
        state_row_set_value(state, row, undo->value);
        row->forgotten = undo->was_forgotten;
        if (!undo->was_dirty)
            state_row_set_clean(state, row);
        if (undo->was_missing)
            state_row_drop(state, row);
        state_value_unref(state, value);
    }
}

void state_rollback(struct state *state)
{
    state_rollback_to(state, 0);
    state->transaction_open = false;
    check_sums(state);
}

uint64_t state_load_generation(const struct state *state)
{
    return state->load_generation;
}

bool state_load(struct state *state, uint64_t load_generation, struct slice key,
                const struct slice *value)
{
    bool made;

    CHECK(!state->transaction_open);
    if (load_generation != state->load_generation)
        return false;
    if (value == NULL && state_miss_is_absent(state, key))
        return true;
    state_unpack(state, key);
    struct row *row = state_row_make(state, key, &made);
    if (made && value != NULL)
        state_row_set_value(state, row, value_new(state, *value));
    return true;
}

void state_set_operations_known_ms(struct state *state, uint64_t known_ms)
{
    state->operations_known_ms = known_ms;
}

void state_stats_get(const struct state *state, struct state_stats *ret_stats)
{
    *ret_stats = state->stats;
    for (uint32_t i = 0; i < TABLE_RUNS; i++) {
        const struct fresh *fresh = &state->fresh[i];
        ret_stats->unread_rows += fresh->run.count;
        if (!fresh->frozen_unpacked)
            ret_stats->unread_rows += fresh->frozen.count;
    }
    ret_stats->rows = state->table.row_count + ret_stats->unread_rows;
    ret_stats->dirty_rows =
        (uint64_t)state->dirty_count + state->frozen_count + ret_stats->unread_rows;
}
