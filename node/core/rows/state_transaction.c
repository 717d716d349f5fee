/* One transaction: what it changes, and how that is undone. */
#include "node/core/rows/state_row.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"

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
        (void)change(state, key, state_value_new(state, value));
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
    struct row *row = change(state, key, state_value_new(state, value));

    if (state->table.row_count > row_count)
        row->unwritten = true;
}

void state_forget(struct state *state, struct slice key)
{
    state_unpack(state, key);
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
    struct blob *note = state_value_new(state, value);

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

    CHECK(fresh != NULL); /* What is in a run is of a fresh entity. */
    CHECK(state->stats.dirty_bytes >= record->size_bytes);
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
