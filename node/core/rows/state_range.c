#include "node/core/rows/row_key.h"
#include "node/core/rows/state_row.h"
#include "runtime/base/check.h"

static struct coverage *coverage_find(struct state *state, struct slice prefix)
{
    for (uint32_t i = 0; i < state->coverage_count; i++) {
        if (slice_equal(buf_slice(&state->coverages[i].prefix), prefix))
            return &state->coverages[i];
    }
    return NULL;
}

/* The least recently used place when all are taken: what is forgotten is loaded again. */
static struct coverage *coverage_make(struct state *state, struct slice prefix)
{
    struct coverage *coverage = &state->coverages[0];

    if (state->coverage_count < COVERAGES_MAX) {
        coverage = &state->coverages[state->coverage_count++];
    } else {
        for (uint32_t i = 1; i < COVERAGES_MAX; i++) {
            if (state->coverages[i].used < coverage->used)
                coverage = &state->coverages[i];
        }
    }
    buf_clear(&coverage->prefix);
    buf_append(&coverage->prefix, prefix.data, prefix.size);
    return coverage;
}

static void coverage_remove(struct state *state, struct coverage *coverage)
{
    CHECK(coverage < state->coverages + state->coverage_count);
    struct coverage *last = &state->coverages[--state->coverage_count];
    struct coverage removed = *coverage;
    *coverage = *last;
    *last = removed;
}

void state_uncover(struct state *state, struct slice key)
{
    for (uint32_t i = state->coverage_count; i > 0; i--) {
        struct coverage *coverage = &state->coverages[i - 1];
        if (slice_begins_with(key, buf_slice(&coverage->prefix)))
            coverage_remove(state, coverage);
    }
}

static void buf_set(struct buf *buf, struct slice bytes)
{
    buf_clear(buf);
    buf_append(buf, bytes.data, bytes.size);
}

bool state_load_range(struct state *state, uint64_t load_generation,
                      const struct state_range *range, struct slice last_key, bool complete)
{
    if (load_generation != state->load_generation)
        return false;
    struct coverage *coverage = coverage_find(state, range->prefix);
    bool extends = coverage != NULL &&
                   slice_compare(range->after, buf_slice(&coverage->after)) >= 0 &&
                   slice_compare(range->after, buf_slice(&coverage->to)) <= 0;
    if (coverage == NULL)
        coverage = coverage_make(state, range->prefix);
    coverage->used = ++state->coverage_clock;
    if (!extends) {
        buf_set(&coverage->after, range->after);
        buf_set(&coverage->to, range->after);
        coverage->complete = false;
    }
    if (slice_compare(last_key, buf_slice(&coverage->to)) > 0)
        buf_set(&coverage->to, last_key);
    if (complete)
        coverage->complete = true;
    return true;
}

/* How far memory can tell, from `after` on. */
struct horizon {
    bool all;
    struct slice to;
};

static struct horizon horizon_of(struct state *state, const struct state_range *range,
                                 struct row_key *known)
{
    struct horizon horizon = { .to = range->after };
    struct coverage *coverage = coverage_find(state, range->prefix);

    enum table_miss miss = (enum table_miss)table_of(range->prefix)->miss;

    if (miss == TABLE_MISS_ABSENT)
        return (struct horizon){ .all = true };
    if (coverage != NULL && slice_compare(range->after, buf_slice(&coverage->after)) >= 0) {
        coverage->used = ++state->coverage_clock;
        horizon.all = coverage->complete;
        if (slice_compare(buf_slice(&coverage->to), horizon.to) > 0)
            horizon.to = buf_slice(&coverage->to);
    }
    if (miss == TABLE_MISS_ABOVE) {
        row_key_operation_bound(known, state->operations_known_ms);
        if (state->operations_known_ms == 0 || slice_compare(horizon.to, row_key_slice(known)) >= 0)
            horizon.all = true;
    }
    return horizon;
}

static bool page_is_in_memory(struct state *state, const struct state_range *range,
                              const struct horizon *horizon)
{
    uint32_t count = 0;
    struct order_walk walk;

    if (horizon->all)
        return true;
    order_walk_begin(state, range->prefix, range->after, &walk);
    for (;;) {
        const struct row *row = order_walk_next(&walk);
        if (row == NULL || slice_compare(row_slice(row), horizon->to) > 0)
            return false;
        if (row->value != NULL && ++count == range->limit)
            return true;
    }
}

err state_range_visit(struct state *state, const struct state_range *range, struct need *need,
                      bool (*visit)(void *context, struct slice key, struct slice value),
                      void *context)
{
    struct row_key known;
    struct horizon horizon = horizon_of(state, range, &known);
    struct order_walk walk;

    CHECK(range->prefix.size > 0);
    order_ask(state, range->prefix);
    state_unpack(state, range->prefix);
    if (!page_is_in_memory(state, range, &horizon)) {
        struct state_range missing = *range;
        missing.after = horizon.to;
        need_add_range(need, &missing);
        return ERR_NEED;
    }
    order_walk_begin(state, range->prefix, range->after, &walk);
    for (uint32_t count = 0; count < range->limit;) {
        struct row *row = order_walk_next(&walk);
        if (row == NULL)
            break;
        if (row->value == NULL)
            continue;
        state_row_use(state, row);
        count++;
        if (!visit(context, row_slice(row), row_value(row)))
            break;
    }
    return ERR_OK;
}
