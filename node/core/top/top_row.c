#include "node/core/top/top_row.h"

#include <string.h>

#define ROW_VERSION  1u
#define SOURCE_BYTES 2u

/* ---- keys ---- */
static bool read_share(struct reader *reader, struct top_key *key)
{
    size_t left = reader_left(reader);

    if (left <= SOURCE_BYTES + 1)
        return false;
    key->target = read_raw(reader, left - SOURCE_BYTES - 1);
    bool ended = read_u8(reader) == 0;
    key->source = read_u16_be(reader);
    return ended;
}

static bool read_rank(struct reader *reader, struct top_key *key)
{
    key->window = (char)read_u8(reader);
    key->count = ~read_u64_be(reader);
    key->target = read_raw(reader, reader_left(reader));
    return key->count > 0 &&
           (key->window == TOP_DAY || key->window == TOP_WEEK || key->window == TOP_ALL);
}

err top_key_parse(struct slice bytes, struct top_key *ret_key)
{
    struct reader reader = reader_from(bytes);
    struct top_key key = { 0 };
    uint8_t table = read_u8(&reader);
    bool sound = true;

    key.collection = read_u64_be(&reader);
    if (table == TABLE_SHARE)
        sound = read_share(&reader, &key);
    else if (table == TABLE_RANK)
        sound = read_rank(&reader, &key);
    else
        key.target = read_raw(&reader, reader_left(&reader));
    if (table != TABLE_SHARE && table != TABLE_TALLY && table != TABLE_RANK)
        return ERR_CORRUPT;
    if (reader_finish(&reader) != ERR_OK || !sound || key.collection == 0 ||
        !target_is_sound(key.target))
        return ERR_CORRUPT;
    *ret_key = key;
    return ERR_OK;
}

/* ---- values ---- */
void pulled_row_encode(struct source_dot dot, struct buf *out)
{
    buf_put_u8(out, ROW_VERSION);
    buf_put_u64(out, dot.epoch);
    buf_put_u64(out, dot.counter);
}

static err pulled_value(struct slice value, struct source_dot *ret_dot)
{
    struct reader reader = reader_from(value);
    bool known = read_u8(&reader) == ROW_VERSION;

    ret_dot->epoch = read_u64(&reader);
    ret_dot->counter = read_u64(&reader);
    if (known && ret_dot->epoch > 0 && reader_finish(&reader) == ERR_OK)
        return ERR_OK;
    *ret_dot = (struct source_dot){ 0 };
    return ERR_CORRUPT;
}

err pulled_row_decode(struct slice key, struct slice value, uint32_t *ret_source,
                      struct source_dot *ret_dot)
{
    struct reader reader = reader_from(key);
    bool known = read_u8(&reader) == TABLE_PULLED;

    *ret_source = read_u16_be(&reader);
    if (!known || reader_finish(&reader) != ERR_OK)
        return ERR_CORRUPT;
    return pulled_value(value, ret_dot);
}

void share_row_encode(const struct share_row *row, struct buf *out)
{
    buf_put_u8(out, ROW_VERSION);
    buf_put_u64(out, row->count);
    hours_encode(&row->hours, out);
}

err share_row_decode(struct slice value, struct share_row *ret_row)
{
    struct reader reader = reader_from(value);
    bool known = read_u8(&reader) == ROW_VERSION;

    ret_row->count = read_u64(&reader);
    hours_read(&reader, &ret_row->hours);
    if (!known || ret_row->count == 0 || reader_finish(&reader) != ERR_OK)
        return ERR_CORRUPT;
    return ERR_OK;
}

void tally_row_encode(const struct tally_row *row, struct buf *out)
{
    buf_put_u8(out, ROW_VERSION);
    buf_put_u64(out, row->count);
    buf_put_u64(out, row->day);
    buf_put_u64(out, row->week);
    hours_encode(&row->hours, out);
}

err tally_row_decode(struct slice value, struct tally_row *ret_row)
{
    struct reader reader = reader_from(value);
    bool known = read_u8(&reader) == ROW_VERSION;

    ret_row->count = read_u64(&reader);
    ret_row->day = read_u64(&reader);
    ret_row->week = read_u64(&reader);
    hours_read(&reader, &ret_row->hours);
    if (!known || ret_row->count == 0 || reader_finish(&reader) != ERR_OK)
        return ERR_CORRUPT;
    return ERR_OK;
}

void rank_row_encode(struct buf *out)
{
    buf_put_u8(out, ROW_VERSION);
}

err rank_row_decode(struct slice key, struct slice value, struct top_key *ret_key)
{
    if (value.size != 1 || value.data[0] != ROW_VERSION || key.size == 0 ||
        key.data[0] != TABLE_RANK)
        return ERR_CORRUPT;
    return top_key_parse(key, ret_key);
}

/* ---- finding ---- */
err pulled_find(struct state *state, uint32_t source, struct need *need, struct source_dot *ret_dot)
{
    struct row_key key;
    struct slice value = { 0 };

    *ret_dot = (struct source_dot){ 0 };
    row_key_pulled(&key, source);
    enum state_found found = row_find(state, &key, need, &value);
    return found == STATE_PRESENT ? pulled_value(value, ret_dot) : row_found(found, ERR_OK);
}

err share_find(struct state *state, const struct top_key *of, struct need *need,
               struct share_row *ret_row)
{
    struct row_key key;
    struct slice value = { 0 };

    *ret_row = (struct share_row){ 0 };
    row_key_share_prefix(&key, of->collection, of->target);
    row_key_share_add(&key, of->source);
    enum state_found found = row_find(state, &key, need, &value);
    return found == STATE_PRESENT ? share_row_decode(value, ret_row) : row_found(found, ERR_OK);
}

err tally_find(struct state *state, const struct top_key *of, struct need *need,
               struct tally_row *ret_row)
{
    struct row_key key;
    struct slice value = { 0 };

    *ret_row = (struct tally_row){ 0 };
    row_key_tally(&key, of->collection, of->target);
    enum state_found found = row_find(state, &key, need, &value);
    return found == STATE_PRESENT ? tally_row_decode(value, ret_row) : row_found(found, ERR_OK);
}
