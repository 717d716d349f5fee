#include "node/core/favorite/recount_row.h"

#define ROW_VERSION 1u
#define FLAG_DRY    1u
#define FLAG_DONE   2u
#define FLAG_UNDER  4u
#define FLAG_SPOILT 8u
#define FLAGS_ALL   15u

void recount_row_encode(const struct recount_row *row, struct buf *out)
{
    buf_put_u8(out, ROW_VERSION);
    buf_put_u8(out, (uint8_t)row->part);
    buf_put_u8(out,
               (uint8_t)((row->dry_run ? FLAG_DRY : 0) | (row->done ? FLAG_DONE : 0) |
                         (row->under_way ? FLAG_UNDER : 0) | (row->unreadable ? FLAG_SPOILT : 0)));
    buf_put_bytes(out, row->id);
    buf_put_u64(out, row->step);
    buf_put_u64(out, row->only_number);
    buf_put_bytes(out, row->only_target);
    buf_put_u64(out, row->rows);
    buf_put_u64(out, row->targets);
    buf_put_u64(out, row->different);
    buf_put_u64(out, row->left_alone);
    buf_put_u64(out, row->number);
    buf_put_bytes(out, row->target);
    buf_put_bytes(out, row->place);
    if (!row->under_way)
        return;
    buf_put_u8(out, (uint8_t)row->table);
    buf_put_bytes(out, row->entity);
    buf_put_u64(out, row->count);
    buf_put_u64(out, row->began.epoch);
    buf_put_u64(out, row->began.counter);
    hours_encode(&row->hours, out);
}

static void read_under_way(struct reader *reader, struct recount_row *row)
{
    row->table = (char)read_u8(reader);
    row->entity = read_bytes(reader, RECOUNT_KEY_MAX);
    row->count = read_u64(reader);
    row->began.epoch = read_u64(reader);
    row->began.counter = read_u64(reader);
    hours_read(reader, &row->hours);
    reader->bad |= row->part != RECOUNT_COUNTS || row->number == 0;
    reader->bad |= row->table != TABLE_FAVORER && row->table != TABLE_ADDER;
}

/* What is named is there where it has to be. */
static bool is_sound(const struct recount_row *row)
{
    if (row->part < RECOUNT_COUNTS || row->part > RECOUNT_PLACES || row->id.size == 0)
        return false;
    if (row->only_target.size > 0 && (row->only_number == 0 || !target_is_sound(row->only_target)))
        return false;
    if (row->number > 0 && !target_is_sound(row->target))
        return false;
    if (row->number == 0 && row->target.size > 0)
        return false;
    return row->part == RECOUNT_PLACES || row->place.size == 0;
}

err recount_row_decode(struct slice value, struct recount_row *ret_row)
{
    struct reader reader = reader_from(value);
    struct recount_row row = { 0 };

    reader.bad |= read_u8(&reader) != ROW_VERSION;
    row.part = (enum recount_part)read_u8(&reader);
    uint8_t flags = read_u8(&reader);
    reader.bad |= (flags & ~FLAGS_ALL) != 0;
    row.dry_run = (flags & FLAG_DRY) != 0;
    row.done = (flags & FLAG_DONE) != 0;
    row.under_way = (flags & FLAG_UNDER) != 0;
    row.unreadable = (flags & FLAG_SPOILT) != 0;
    row.id = read_bytes(&reader, RECOUNT_ID_MAX);
    row.step = read_u64(&reader);
    row.only_number = read_u64(&reader);
    row.only_target = read_bytes(&reader, TARGET_ID_MAX);
    row.rows = read_u64(&reader);
    row.targets = read_u64(&reader);
    row.different = read_u64(&reader);
    row.left_alone = read_u64(&reader);
    row.number = read_u64(&reader);
    row.target = read_bytes(&reader, TARGET_ID_MAX);
    row.place = read_bytes(&reader, RECOUNT_KEY_MAX);
    if (row.under_way)
        read_under_way(&reader, &row);
    reader.bad |= row.unreadable && !row.under_way;
    if (reader_finish(&reader) != ERR_OK || !is_sound(&row))
        return ERR_CORRUPT;
    *ret_row = row;
    return ERR_OK;
}

err recount_find(struct state *state, struct need *need, struct recount_row *ret_row)
{
    struct row_key key;
    struct slice value = { 0 };

    *ret_row = (struct recount_row){ 0 };
    row_key_recount(&key);
    enum state_found found = row_find(state, &key, need, &value);
    if (found == STATE_MISSING)
        return ERR_NEED;
    return found == STATE_ABSENT ? ERR_OK : recount_row_decode(value, ret_row);
}

void recount_store(struct apply_context *context, const struct recount_row *row)
{
    struct row_key key;

    row_key_recount(&key);
    buf_clear(context->scratch);
    recount_row_encode(row, context->scratch);
    state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
}

/* Where the row cannot be read, its rebuild begins again: nothing is to be followed. */
err recount_has_counted(struct apply_context *context, const struct favorite_key *edge,
                        bool *ret_counted)
{
    struct recount_row row;

    *ret_counted = false;
    if (context->version < RECOUNT_APPLY_VERSION || edge->entity.size == 0)
        return ERR_OK;
    err e = recount_find(context->state, context->need, &row);
    if (e == ERR_NEED)
        return e;
    *ret_counted = e == ERR_OK && row.under_way && row.number == edge->collection &&
                   slice_equal(row.target, edge->target) &&
                   slice_compare(edge->entity, row.entity) <= 0;
    return ERR_OK;
}

void recount_follow(struct apply_context *context, const struct partial_row *before,
                    const struct partial_row *after)
{
    struct recount_row row;

    if (recount_find(context->state, context->need, &row) != ERR_OK || !row.under_way)
        return;
    row.count += after->count - before->count; /* Up or down. */
    hours_replace(&row.hours, &before->hours, &after->hours);
    recount_store(context, &row);
}
