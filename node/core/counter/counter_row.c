#include "node/core/counter/counter_row.h"

#include "node/core/definition/counter_rule.h"

#define ROW_VERSION 1u

void added_row_encode(const struct added_row *row, struct buf *out)
{
    buf_put_u8(out, ROW_VERSION);
    buf_put_u64(out, (uint64_t)row->value);
    buf_put_u64(out, row->at_ms);
}

err added_row_decode(struct slice value, struct added_row *ret_row)
{
    struct reader reader = reader_from(value);

    bool known = read_u8(&reader) == ROW_VERSION;
    uint64_t number = read_u64(&reader);
    uint64_t at_ms = read_u64(&reader);
    if (!known || number == 0 || number > (uint64_t)COUNTER_VALUE_MAX ||
        reader_finish(&reader) != ERR_OK)
        return ERR_CORRUPT;
    *ret_row = (struct added_row){ (int64_t)number, at_ms };
    return ERR_OK;
}

static err find(struct state *state, const struct row_key *key, struct need *need,
                struct added_row *ret_row)
{
    struct slice value = { 0 };

    *ret_row = (struct added_row){ 0 };
    enum state_found found = row_find(state, key, need, &value);
    if (found == STATE_MISSING)
        return ERR_NEED;
    return found == STATE_ABSENT ? ERR_OK : added_row_decode(value, ret_row);
}

err added_find(struct state *state, const struct favorite_key *key, struct need *need,
               struct added_row *ret_row)
{
    struct row_key row;

    row_key_added_prefix(&row, key->entity, key->collection);
    row_key_added_add(&row, key->target);
    return find(state, &row, need, ret_row);
}

err adder_find(struct state *state, const struct favorite_key *key, struct need *need,
               struct added_row *ret_row)
{
    struct row_key row;

    row_key_adder_prefix(&row, key->collection, key->target);
    row_key_adder_add(&row, key->entity);
    return find(state, &row, need, ret_row);
}
