#include "node/core/consumer/consumer_row.h"

#include "node/core/codec/op.h"
#include "node/core/handler/event_row.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"

#define ROW_VERSION              2u
#define ROW_VERSION_WITHOUT_MADE 1u /* Written while it is not known: apply version 9 reads it. */

bool consumer_name_is_good(struct slice name)
{
    if (name.size == 0 || name.size > LIMIT_CONSUMER_NAME_BYTES)
        return false;
    for (size_t i = 0; i < name.size; i++) {
        uint8_t c = name.data[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && c != '.' && c != '_' && c != '-')
            return false;
    }
    return true;
}

void consumer_row_key(struct row_key *key, struct slice name)
{
    char text[CONSUMER_ENTITY_SIZE];
    struct buf entity = { 0 };

    CHECK(consumer_name_is_good(name));
    buf_append(&entity, CONSUMER_ENTITY, sizeof CONSUMER_ENTITY - 1);
    buf_append(&entity, name.data, name.size);
    CHECK(entity.size < sizeof text);
    row_key_consumer(key, buf_slice(&entity));
    buf_deinit(&entity);
}

err consumer_key_parse(struct slice key, struct slice *ret_name)
{
    const size_t head = sizeof CONSUMER_ENTITY; /* The letter, and the kind. */

    if (key.size <= head || key.data[0] != TABLE_CONSUMER)
        return ERR_CORRUPT;
    struct slice entity = { key.data + 1, key.size - 1 };
    struct slice name = { key.data + head, key.size - head };
    if (!slice_begins_with(entity, SLICE_LITERAL(CONSUMER_ENTITY)) || !consumer_name_is_good(name))
        return ERR_CORRUPT;
    *ret_name = name;
    return ERR_OK;
}

void consumer_row_encode(const struct consumer_row *row, struct buf *out)
{
    bool made = row->made_op_id.size > 0;

    buf_put_u8(out, made ? ROW_VERSION : ROW_VERSION_WITHOUT_MADE);
    buf_put_u64(out, row->version);
    buf_put_u8(out, (uint8_t)row->kind_count);
    buf_append(out, row->kinds, row->kind_count);
    buf_put_short(out, row->entity_prefix);
    buf_put_short(out, row->entity);
    buf_put_u64(out, row->created_at_ms);
    buf_put_u64(out, row->committed_at_ms);
    buf_put_u8(out, (uint8_t)row->change);
    buf_put_short(out, row->by);
    buf_put_short(out, row->op_id);
    buf_put_hash(out, row->payload);
    buf_put_bytes(out, row->cursor);
    if (!made)
        return;
    buf_put_short(out, row->made_op_id);
    buf_put_hash(out, row->made_payload);
}

static void read_kinds(struct reader *reader, struct consumer_row *row)
{
    row->kind_count = read_u8(reader);
    reader->bad |= row->kind_count > CONSUMER_KINDS_MAX;
    for (uint32_t i = 0; i < row->kind_count && !reader->bad; i++) {
        row->kinds[i] = read_u8(reader);
        reader->bad |= row->kinds[i] == 0;
    }
}

static void read_made(struct reader *reader, struct consumer_row *row)
{
    struct op_id id;
    const char *why;

    row->made_op_id = row_read_short(reader, OP_ID_BYTES_MAX);
    row->made_payload = read_hash(reader);
    reader->bad |=
        row->change != CONSUMER_COMMITTED || op_id_parse(row->made_op_id, &id, &why) != ERR_OK;
}

/* What no request could have made. */
static bool makes_sense(const struct consumer_row *row)
{
    struct op_id id;
    const char *why;

    return row->version > 0 && (row->entity_prefix.size == 0 || row->entity.size == 0) &&
           (row->change == CONSUMER_CREATED || row->change == CONSUMER_COMMITTED) &&
           (row->committed_at_ms > 0 || row->change == CONSUMER_CREATED) &&
           (row->by.size == 0 || caller_name_is_good(row->by)) &&
           op_id_parse(row->op_id, &id, &why) == ERR_OK;
}

err consumer_row_decode(struct slice value, struct arena *arena, struct consumer_row *ret_row,
                        struct event_cursor *ret_cursor)
{
    struct reader reader = reader_from(value);
    struct consumer_row row = { 0 };
    struct event_cursor cursor = { 0 };

    uint8_t version = read_u8(&reader);
    bool known = version == ROW_VERSION || version == ROW_VERSION_WITHOUT_MADE;
    row.version = read_u64(&reader);
    read_kinds(&reader, &row);
    row.entity_prefix = row_read_short(&reader, CONSUMER_PREFIX_MAX);
    row.entity = row_read_short(&reader, CONSUMER_PREFIX_MAX);
    row.created_at_ms = read_u64(&reader);
    row.committed_at_ms = read_u64(&reader);
    row.change = (enum consumer_change)read_u8(&reader);
    row.by = row_read_short(&reader, CALLER_NAME_BYTES_MAX);
    row.op_id = row_read_short(&reader, OP_ID_BYTES_MAX);
    row.payload = read_hash(&reader);
    row.cursor = read_bytes(&reader, CONSUMER_CURSOR_MAX);
    if (version == ROW_VERSION)
        read_made(&reader, &row);
    if (!known || reader_finish(&reader) != ERR_OK || !makes_sense(&row))
        return ERR_CORRUPT;
    if (row.cursor.size > 0 && event_cursor_decode(row.cursor, 0, arena, &cursor) != ERR_OK)
        return ERR_CORRUPT;
    *ret_row = row;
    *ret_cursor = cursor;
    return ERR_OK;
}

bool consumer_row_is_sound(struct arena *arena, struct slice key, struct slice value)
{
    struct consumer_row row;
    struct event_cursor cursor;
    struct slice name;

    return consumer_key_parse(key, &name) == ERR_OK &&
           consumer_row_decode(value, arena, &row, &cursor) == ERR_OK;
}
