#include "node/core/counter/counter_row.h"

#include "node/core/definition/counter_rule.h"

#define ROW_VERSION       2u
#define ROW_VERSION_FIRST 1u /* Without hours. */

void added_row_encode(const struct added_row *row, struct buf *out)
{
    buf_put_u8(out, row->hours.count > 0 ? ROW_VERSION : ROW_VERSION_FIRST);
    buf_put_u64(out, (uint64_t)row->value);
    buf_put_u64(out, row->at_ms);
    if (row->hours.count > 0)
        hours_encode(&row->hours, out);
}

err added_row_decode(struct slice value, struct added_row *ret_row)
{
    struct reader reader = reader_from(value);

    struct added_row row = { 0 };

    uint8_t version = read_u8(&reader);
    uint64_t number = read_u64(&reader);
    row.at_ms = read_u64(&reader);
    if (version == ROW_VERSION)
        hours_read(&reader, &row.hours);
    if ((version == ROW_VERSION) != (row.hours.count > 0) ||
        (version != ROW_VERSION && version != ROW_VERSION_FIRST) || number == 0 ||
        number > (uint64_t)COUNTER_VALUE_MAX || reader_finish(&reader) != ERR_OK ||
        hours_sum(&row.hours, UINT32_MAX, UINT32_MAX) > number)
        return ERR_CORRUPT;
    row.value = (int64_t)number;
    *ret_row = row;
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
