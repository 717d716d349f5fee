#include "node/core/rows/row_key.h"
#include "node/core/rows/state_row.h"
#include "runtime/base/check.h"

static void freeze_rows(struct state *state)
{
    state->frozen_count = state->dirty_count;
    for (uint32_t i = 0; i < state->frozen_count; i++) {
        struct row *row = state->dirty[i];
        state->frozen[i] = row;
        state->writes[i] = (struct state_write){
            .key = row_slice(row),
            .value = row->value != NULL ? blob_ref(row->value) : NULL,
        };
        row->frozen = true;
        row->unwritten = false;
        row->dirty_place = DIRTY_NONE;
    }
    state->dirty_count = 0;
}

static struct state_write *freeze_run(struct fresh *fresh, struct state_write *write)
{
    struct run_cursor cursor = { 0 };
    struct run_record *record;

    CHECK(fresh->frozen.count == 0);
    run_join(&fresh->frozen, &fresh->run);
    fresh->frozen_unpacked = false;
    while ((record = run_next(&fresh->frozen, &cursor)) != NULL)
        *write++ = (struct state_write){ .key = run_key(record), .value = run_value(record) };
    return write;
}

bool state_checkpoint_begin(struct state *state, const struct state_write **ret_writes,
                            uint32_t *ret_count)
{
    CHECK(!state->transaction_open);
    if (state->checkpoint_open)
        return false;
    uint32_t count = state->dirty_count;
    for (uint32_t i = 0; i < TABLE_RUNS; i++)
        count += state->fresh[i].run.count;
    if (state->write_capacity <= count) { /* Also for none: places are counted from `writes`. */
        state->write_capacity = count + 1;
        state->frozen = mem_realloc(state->frozen, sizeof(struct row *) * state->write_capacity);
        state->writes = mem_realloc(state->writes, sizeof *state->writes * state->write_capacity);
    }
    freeze_rows(state);
    struct state_write *write = state->writes + state->frozen_count;
    for (uint32_t i = 0; i < TABLE_RUNS; i++)
        write = freeze_run(&state->fresh[i], write);
    state->frozen_bytes = state->stats.dirty_bytes;
    state->stats.dirty_bytes = 0;
    state->checkpoint_open = true;
    *ret_writes = state->writes;
    *ret_count = count;
    return true;
}

/* A deletion that the database has too: for these tables a miss says the same. */
static bool is_spent(const struct row *row)
{
    return row->value == NULL && table_of(row_slice(row))->miss != TABLE_MISS_LOAD;
}

static void thaw(struct state *state, struct row *row, bool written)
{
    row->frozen = false;
    if (row->dirty_place != DIRTY_NONE)
        return;
    /* Through the dirty list, so that the list of uses takes it in. */
    state_row_set_dirty(state, row);
    if (!written)
        return;
    state_row_set_clean(state, row);
    if (is_spent(row)) {
        /* A page read before the deletion must not bring it back. */
        if (table_of(row_slice(row))->miss == TABLE_MISS_ABOVE)
            state->load_generation++;
        state_row_drop(state, row);
    }
}

/* As when rows are evicted: pages that were read before these rows were written lack them. */
static void forget_frozen(struct state *state, const struct run *frozen)
{
    struct run_cursor cursor = { 0 };
    struct run_record *record;

    state->load_generation++;
    while (state->coverage_count > 0 && (record = run_next(frozen, &cursor)) != NULL)
        state_uncover(state, run_key(record));
}

static void thaw_run(struct state *state, struct fresh *fresh, bool written)
{
    struct run *frozen = &fresh->frozen;

    if (frozen->count == 0)
        return;
    if (!written && !fresh->frozen_unpacked) {
        state->stats.dirty_bytes += frozen->bytes;
        run_join(frozen, &fresh->run);
        run_join(&fresh->run, frozen);
        return;
    }
    if (!fresh->frozen_unpacked)
        forget_frozen(state, frozen);
    CHECK(state->stats.bytes >= frozen->bytes);
    state->stats.bytes -= frozen->bytes;
    run_clear(frozen);
}

void state_checkpoint_end(struct state *state, bool written)
{
    CHECK(state->checkpoint_open);
    CHECK(!state->transaction_open);
    for (uint32_t i = 0; i < state->frozen_count; i++) {
        state_value_unref(state, state->writes[i].value);
        thaw(state, state->frozen[i], written);
    }
    for (uint32_t i = 0; i < TABLE_RUNS; i++)
        thaw_run(state, &state->fresh[i], written);
    state->frozen_count = 0;
    state->frozen_bytes = 0;
    state->checkpoint_open = false;
}

static void evict_row(struct state *state, struct row *row)
{
    if (row->ordered)
        state_uncover(state, row_slice(row));
    state->stats.evictions++;
    state_row_drop(state, row);
}

/* Until rows of this kind hold at most `bytes_max`. */
static bool evict_kind(struct state *state, enum drop_kind kind, size_t bytes_max, size_t total_max)
{
    struct drop_list *list = &state->drops[kind];
    bool evicted = false;

    while (list->bytes > bytes_max && state->stats.bytes > total_max) {
        evict_row(state, list->oldest);
        evicted = true;
    }
    return evicted;
}

/* As they came, until they hold at most `bytes_max`. What is at or below the youngest
 * millisecond dropped must be asked for from now on. */
static bool evict_aged(struct state *state, size_t bytes_max, size_t total_max)
{
    bool evicted = false;

    while (state->aged_bytes > bytes_max && state->stats.bytes > total_max &&
           state->drops[DROP_AGED].oldest != NULL) {
        struct row *row = state->drops[DROP_AGED].oldest;
        uint64_t ms = row_operation_ms(row_slice(row));
        if (ms > state->operations_known_ms)
            state->operations_known_ms = ms;
        evict_row(state, row);
        evicted = true;
    }
    return evicted;
}

void state_evict(struct state *state, size_t bytes_max)
{
    CHECK(!state->transaction_open);
    uint64_t unwritten = state->stats.dirty_bytes + state->frozen_bytes;
    /* Half is for clean rows whatever waits for its checkpoint: without it a burst of writes threw
     * out the players it was for, and the next ones read them back (11 k grants/s became 1.5 k). */
    uint64_t total_max = bytes_max / 2 + unwritten;

    if (total_max < bytes_max)
        total_max = bytes_max;
    bool evicted = evict_kind(state, DROP_FIRST, 0, total_max);
    evicted |= evict_aged(state, bytes_max / 8, total_max);
    /* A document is as large as many players, and nearly every operation needs its player: half is
     * for the rows of those. */
    evicted |= evict_kind(state, DROP_LARGE, bytes_max / 2, total_max);
    evicted |= evict_kind(state, DROP_USED, 0, total_max);
    evicted |= evict_kind(state, DROP_LARGE, 0, total_max);
    evicted |= evict_aged(state, 0, total_max);
    if (evicted)
        state->load_generation++;
}
