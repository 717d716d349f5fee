#include "node/core/repair/top_repair.h"

#include <string.h>

#define SHARES_MAX (UINT16_MAX + 1u)

/* All of the source is pulled again. */
static err pull_again(struct apply_context *context, uint32_t source)
{
    struct row_key key;

    row_key_pulled(&key, source);
    state_delete(context->state, row_key_slice(&key));
    return ERR_OK;
}

static err make_note(struct apply_context *context, struct slice key, struct edge_repair *repair)
{
    const uint8_t sound = CHANGED_ROW_VALUE;
    struct changed_row note;
    struct partial_row row;

    if (changed_row_decode(key, (struct slice){ &sound, 1 }, &note) != ERR_OK)
        return edge_repair_drop(context, key, repair);
    const struct favorite_key edge = { .collection = note.collection, .target = note.target };
    err e = partial_find(context->state, &edge, context->need, &row);
    if (e == ERR_NEED)
        return e;
    bool emptied = key.data[0] == TABLE_EMPTIED;
    if (e != ERR_OK || memcmp(&row.changed, &note.dot, sizeof note.dot) != 0 ||
        (emptied && row.count > 0))
        return edge_repair_drop(context, key, repair);
    state_put(context->state, key, (struct slice){ &sound, 1 });
    return ERR_OK;
}

/* The note that is the newest may be of any dot up to this entry's: homes look, and find it. */
static err make_newest(struct apply_context *context, struct slice key, struct edge_repair *repair)
{
    struct source_dot dot = { context->dot.epoch, context->dot.counter };
    struct source_dot unused;

    buf_clear(context->scratch);
    newest_row_encode(dot, context->scratch);
    if (newest_row_decode(key, buf_slice(context->scratch), &unused) != ERR_OK)
        return edge_repair_drop(context, key, repair);
    state_put(context->state, key, buf_slice(context->scratch));
    return ERR_OK;
}

struct adding {
    struct tally_row *row;
    struct slice leave_out; /* Its key. */
    bool unreadable;
};

static bool add_share(void *user, struct slice key, struct slice value)
{
    struct adding *adding = user;
    struct share_row share;
    const struct hours none = { 0 };

    if (slice_equal(key, adding->leave_out))
        return true;
    if (share_row_decode(value, &share) != ERR_OK) {
        adding->unreadable = true;
        return false;
    }
    adding->row->count += share.count;
    hours_replace(&adding->row->hours, &none, &share.hours);
    return true;
}

/* The sum of all shares but the one under `leave_out`. */
static err sum_up(struct apply_context *context, const struct top_key *of, struct slice leave_out,
                  struct edge_repair *repair)
{
    struct tally_row row = { 0 }, was;
    struct adding adding = { .row = &row, .leave_out = leave_out };
    struct row_key prefix;

    row_key_share_prefix(&prefix, of->collection, of->target);
    const struct state_range range = { .prefix = row_key_slice(&prefix), .limit = SHARES_MAX };
    err e = state_range_visit(context->state, &range, context->need, add_share, &adding);
    err stands = tally_find(context->state, of, context->need, &was);
    if (e == ERR_NEED || stands == ERR_NEED)
        return ERR_NEED;
    if (adding.unreadable) {
        repair->wants = "shares of the total that can be read: their rows of table S come first";
        return ERR_OK;
    }
    if (stands != ERR_OK) /* Its places are not known: readers pass by those that are left. */
        was = (struct tally_row){ 0 };
    tally_store(context, of, &was, &row);
    repair->dropped = row.count == 0;
    return ERR_OK;
}

static err drop_share(struct apply_context *context, struct slice key, const struct top_key *of,
                      struct edge_repair *repair)
{
    err e = sum_up(context, of, key, repair);
    if (e != ERR_OK || repair->wants != NULL)
        return e;
    e = pull_again(context, of->source);
    return e == ERR_OK ? edge_repair_drop(context, key, repair) : e;
}

static err make_place(struct apply_context *context, struct slice key, const struct top_key *of,
                      struct edge_repair *repair)
{
    struct tally_row row;

    err e = tally_find(context->state, of, context->need, &row);
    if (e == ERR_NEED)
        return e;
    uint64_t stands = of->window == TOP_ALL   ? row.count
                      : of->window == TOP_DAY ? row.day
                                              : row.week;
    if (e != ERR_OK || stands != of->count)
        return edge_repair_drop(context, key, repair);
    buf_clear(context->scratch);
    rank_row_encode(context->scratch);
    state_put(context->state, key, buf_slice(context->scratch));
    return ERR_OK;
}

err top_repair(struct apply_context *context, struct slice key, struct edge_repair *ret_repair)
{
    struct top_key of;

    *ret_repair = (struct edge_repair){ 0 };
    if (key.data[0] == TABLE_CHANGED || key.data[0] == TABLE_EMPTIED)
        return make_note(context, key, ret_repair);
    if (key.data[0] == TABLE_NEWEST)
        return make_newest(context, key, ret_repair);
    if (key.data[0] == TABLE_PULLED || top_key_parse(key, &of) != ERR_OK)
        return edge_repair_drop(context, key, ret_repair);
    if (key.data[0] == TABLE_SHARE)
        return drop_share(context, key, &of, ret_repair);
    if (key.data[0] == TABLE_TALLY)
        return sum_up(context, &of, (struct slice){ 0 }, ret_repair);
    return make_place(context, key, &of, ret_repair);
}
