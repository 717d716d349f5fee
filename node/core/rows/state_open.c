/* The state of a shard from its beginning to its end; what is found in it, and loaded into it. */
#include <stdlib.h>

#include "node/core/rows/state_row.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"

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

void state_free(struct state *state)
{
    if (state == NULL)
        return;
    CHECK(!state->transaction_open);
    if (state->checkpoint_open)
        state_checkpoint_end(state, false);
    for (uint32_t i = 0; i < TABLE_RUNS; i++)
        run_clear(&state->fresh[i].run);
    row_table_deinit(&state->table, state_row_free, state);
    row_pool_deinit(&state->pool);
    for (uint32_t i = 0; i < COVERAGES_MAX; i++)
        coverage_deinit(&state->coverages[i]);
    free(state->dirty);
    free(state->frozen);
    free(state->writes);
    free(state->undo);
    free(state);
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
        state_row_set_value(state, row, state_value_new(state, *value));
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
