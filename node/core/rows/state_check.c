/*
 * state_check: walks a whole state and checks what its files rely on. Tests do so after every step,
 * the simulator after some: in a node it would cost as much as there are rows.
 */
#include "node/core/rows/state_row.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"

/* What the rows add up to; the state keeps each of these sums beside them. */
struct sums {
    const struct state *state;
    uint64_t rows, bytes, dirty, dirty_bytes, frozen, aged_bytes;
    uint64_t listed[DROP_KINDS]; /* Bytes, and... */
    uint64_t listed_rows[DROP_KINDS];
    uint64_t of_run[TABLE_RUNS]; /* Rows of these tables. */
    uint64_t in_trees, children;
};

static bool can_be_dropped(const struct row *row)
{
    return row->dirty_place == DIRTY_NONE && !row->frozen &&
           table_of(row_slice(row))->drop != TABLE_DROP_NEVER;
}

static void check_place(const struct state *state, const struct row *row)
{
    CHECK(row->key_size > 0);
    CHECK(row->hash == hash_u64(row_slice(row)));
    CHECK(row_table_find(&state->table, row_slice(row), row->hash) == row);
    CHECK(IMPLIES(row->value != NULL, row->value->refs > 0));
    CHECK(IMPLIES(row->dirty_place != DIRTY_NONE, row->dirty_place < state->dirty_count));
    CHECK(IMPLIES(row->dirty_place != DIRTY_NONE, state->dirty[row->dirty_place] == row));
    CHECK(IMPLIES(row->frozen, state->checkpoint_open));
    CHECK(IMPLIES(row->unwritten, row->dirty_place != DIRTY_NONE));
    CHECK(IMPLIES(row->forgotten, state->transaction_open));
}

static void check_list_place(const struct state *state, const struct row *row)
{
    CHECK((row->listed != DROP_NONE) == can_be_dropped(row));
    if (row->listed == DROP_NONE) {
        CHECK(row->older == NULL && row->newer == NULL);
        return;
    }
    const struct drop_list *list = &state->drops[row->listed];
    CHECK(row->listed == state_drop_kind(row, true) || row->listed == state_drop_kind(row, false));
    CHECK(row->older != NULL ? row->older->newer == row : list->oldest == row);
    CHECK(row->newer != NULL ? row->newer->older == row : list->newest == row);
}

static void check_row(void *context, struct row *row)
{
    struct sums *sums = context;
    uint8_t run = table_of(row_slice(row))->run;
    size_t bytes = row_bytes(row);
    bool dirty = row->dirty_place != DIRTY_NONE;

    check_place(sums->state, row);
    check_list_place(sums->state, row);
    order_check_row(sums->state, row);
    sums->rows++;
    sums->bytes += bytes;
    sums->dirty += dirty;
    sums->dirty_bytes += dirty ? bytes : 0;
    sums->frozen += row->frozen;
    sums->listed[row->listed] += bytes;
    sums->listed_rows[row->listed]++;
    if (state_is_aged(row))
        sums->aged_bytes += bytes;
    if (run > 0)
        sums->of_run[run - 1]++;
    if (row->ordered && !row->waiting) {
        sums->in_trees++;
        sums->children += row->left != NULL;
        sums->children += row->right != NULL;
    }
}

static uint64_t check_run(const struct run *run)
{
    struct run_cursor cursor = { 0 };
    const struct run_record *record;
    uint32_t count = 0;
    uint64_t bytes = 0;

    while ((record = run_next(run, &cursor)) != NULL) {
        CHECK(record->key_size > 0);
        CHECK(count < run->count);
        count++;
        bytes += record->size_bytes;
    }
    CHECK(count == run->count);
    CHECK(bytes == run->bytes);
    return bytes;
}

static void check_runs(const struct state *state, struct sums *sums)
{
    for (uint32_t i = 0; i < TABLE_RUNS; i++) {
        const struct fresh *fresh = &state->fresh[i];
        uint64_t bytes = check_run(&fresh->run);
        CHECK(fresh->row_count == sums->of_run[i]);
        CHECK(IMPLIES(fresh->frozen.count > 0, state->checkpoint_open));
        sums->bytes += bytes + check_run(&fresh->frozen);
        sums->dirty_bytes += bytes;
    }
}

static void check_lists(const struct state *state, const struct sums *sums)
{
    for (uint32_t kind = DROP_NONE + 1; kind < DROP_KINDS; kind++) {
        const struct drop_list *list = &state->drops[kind];
        uint64_t count = 0;
        CHECK(list->bytes == sums->listed[kind]);
        for (const struct row *row = list->oldest; row != NULL; row = row->newer)
            CHECK(++count <= sums->listed_rows[kind]);
        CHECK(count == sums->listed_rows[kind]);
    }
}

static void check_checkpoint(const struct state *state, const struct sums *sums)
{
    CHECK(state->frozen_count == sums->frozen);
    CHECK(IMPLIES(!state->checkpoint_open, state->frozen_bytes == 0));
    for (uint32_t i = 0; i < state->frozen_count; i++)
        CHECK(state->frozen[i]->frozen);
}

/* A note has neither row nor record; its value is its own. */
static void check_undo(const struct state *state)
{
    CHECK(state->undo_count <= state->undo_capacity);
    CHECK(IMPLIES(!state->transaction_open, state->undo_count == 0));
    for (uint32_t i = 0; i < state->undo_count; i++) {
        const struct undo *undo = &state->undo[i];
        CHECK(undo->row == NULL || undo->record == NULL);
        CHECK(IMPLIES(undo->row != NULL, undo->row->dirty_place != DIRTY_NONE));
        CHECK(IMPLIES(undo->row != NULL && undo->was_missing, undo->value == NULL));
        CHECK(IMPLIES(undo->row == NULL && undo->record == NULL, undo->value != NULL));
    }
}

static void check_coverages(const struct state *state)
{
    CHECK(state->coverage_count <= COVERAGES_MAX);
    for (uint32_t i = 0; i < state->coverage_count; i++) {
        const struct coverage *coverage = &state->coverages[i];
        CHECK(coverage->prefix.size > 0);
        CHECK(coverage->used <= state->coverage_clock);
        CHECK(slice_compare(buf_slice(&coverage->after), buf_slice(&coverage->to)) <= 0);
    }
}

void state_check(const struct state *state)
{
    struct sums sums = { .state = state };

    row_table_visit(&state->table, check_row, &sums);
    check_runs(state, &sums);
    check_lists(state, &sums);
    check_checkpoint(state, &sums);
    check_undo(state);
    check_coverages(state);
    CHECK(state->table.row_count == sums.rows);
    CHECK(state->dirty_count == sums.dirty);
    CHECK(state->stats.bytes == sums.bytes);
    CHECK(state->stats.dirty_bytes == sums.dirty_bytes);
    CHECK(state->aged_bytes == sums.aged_bytes);
    /* Each row of a tree is its root, or the child of one other. */
    CHECK(sums.in_trees == sums.children + order_count_roots(state));
}
