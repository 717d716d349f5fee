#include "node/core/repair/counter_repair.h"

#include "node/core/favorite/favorite.h"

/* With the player's row goes one of its targets. */
static err drop_added(struct apply_context *context, struct slice key,
                      const struct favorite_key *of, struct edge_repair *repair)
{
    struct favorites_row own;

    err e = edge_repair_waits(context, repair);
    if (e != ERR_OK || repair->wants != NULL)
        return e;
    e = favorites_find(context->state, of, context->need, &own);
    if (e == ERR_NEED)
        return e;
    if (e == ERR_OK && own.edges > 0) {
        own.edges--;
        favorites_store(context, of, &own);
    }
    return edge_repair_drop(context, key, repair);
}

err counter_repair(struct apply_context *context, struct slice key, struct edge_repair *ret_repair)
{
    bool of_player = key.data[0] == TABLE_ADDED;
    struct favorite_key of;
    struct added_row row;

    *ret_repair = (struct edge_repair){ 0 };
    if (favorite_key_parse(key, &of) != ERR_OK)
        return edge_repair_drop(context, key, ret_repair);
    err e = of_player ? adder_find(context->state, &of, context->need, &row)
                      : added_find(context->state, &of, context->need, &row);
    if (e == ERR_CORRUPT && of_player) {
        ret_repair->wants = "a row whose twin of table Q is not unreadable, too: RepairRow of that "
                            "comes first";
        return ERR_OK;
    }
    if (e == ERR_NEED)
        return e;
    if (e != ERR_OK || row.value == 0) /* Of what neither says, nothing can be made. */
        return of_player ? drop_added(context, key, &of, ret_repair)
                         : edge_repair_drop(context, key, ret_repair);
    buf_clear(context->scratch);
    added_row_encode(&row, context->scratch);
    state_put(context->state, key, buf_slice(context->scratch));
    return ERR_OK;
}

/* ---- sums ---- */
struct summing {
    uint64_t count, sum;
    bool unreadable;
};

static bool take_row(void *user, struct slice key, struct slice value)
{
    struct summing *summing = user;
    struct added_row row = { 0 };

    (void)key;
    summing->unreadable |= added_row_decode(value, &row) != ERR_OK;
    summing->sum += (uint64_t)row.value;
    summing->count++;
    return true;
}

static err sum_rows(struct apply_context *context, const struct row_key *prefix, uint32_t rows_max,
                    struct summing *ret_summing)
{
    const struct state_range range = { .prefix = row_key_slice(prefix), .limit = rows_max + 1 };

    *ret_summing = (struct summing){ 0 };
    err e = state_range_visit(context->state, &range, context->need, take_row, ret_summing);
    return e == ERR_OK && ret_summing->count > rows_max ? ERR_TOO_LARGE : e;
}

err counter_count_targets(struct apply_context *context, const struct favorite_key *of,
                          uint32_t rows_max, uint64_t *ret_count)
{
    struct summing summing;
    struct row_key prefix;

    row_key_added_prefix(&prefix, of->entity, of->collection);
    err e = sum_rows(context, &prefix, rows_max, &summing);
    *ret_count = summing.count;
    return e;
}

err counter_sum_up(struct apply_context *context, const struct favorite_key *of, uint32_t rows_max,
                   uint64_t *ret_sum)
{
    struct summing summing;
    struct row_key prefix;

    row_key_adder_prefix(&prefix, of->collection, of->target);
    err e = sum_rows(context, &prefix, rows_max, &summing);
    *ret_sum = summing.sum;
    return e == ERR_OK && summing.unreadable ? ERR_CORRUPT : e;
}
