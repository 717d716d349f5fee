#include "node/core/favorite/metadata_row.h"

#include "node/core/codec/json_canon.h"
#include "node/core/codec/op.h"
#include "node/core/favorite/favorite_row.h"
#include "node/core/handler/event_row.h"
#include "node/core/rows/rows.h"
#include "runtime/cluster/caller_name.h"
#include "runtime/cluster/metadata_rule.h"

#define ROW_VERSION 1u
#define KEY_HEAD    9u /* The letter, and the collection. */

void metadata_row_encode(const struct metadata_row *row, struct buf *out)
{
    buf_put_u8(out, ROW_VERSION);
    buf_put_u64(out, row->version);
    buf_put_u64(out, row->changed_at_ms);
    buf_put_bytes(out, row->title);
    buf_put_bytes(out, row->thumbnail_url);
    buf_put_bytes(out, row->attributes);
    buf_put_short(out, row->by);
    buf_put_short(out, row->op_id);
    buf_put_hash(out, row->payload);
}

static bool attributes_are_good(struct slice attributes)
{
    struct buf again = { 0 };
    const char *why;

    bool good = attributes.size > 0 && attributes.data[0] == '{' &&
                json_canon(attributes, &again, &why) == ERR_OK &&
                slice_equal(buf_slice(&again), attributes);
    buf_deinit(&again);
    return good;
}

/* What no request could have made. */
static bool makes_sense(const struct metadata_row *row)
{
    struct op_id id;
    const char *why;

    return row->version > 0 && metadata_title_is_good(row->title) &&
           metadata_url_is_good(row->thumbnail_url) && attributes_are_good(row->attributes) &&
           (row->by.size == 0 || caller_name_is_good(row->by)) &&
           op_id_parse(row->op_id, &id, &why) == ERR_OK;
}

err metadata_row_decode(struct slice value, struct metadata_row *ret_row)
{
    struct reader reader = reader_from(value);
    struct metadata_row row = { 0 };

    bool known = read_u8(&reader) == ROW_VERSION;
    row.version = read_u64(&reader);
    row.changed_at_ms = read_u64(&reader);
    row.title = read_bytes(&reader, LIMIT_METADATA_TITLE_BYTES);
    row.thumbnail_url = read_bytes(&reader, LIMIT_METADATA_URL_BYTES);
    row.attributes = read_bytes(&reader, LIMIT_METADATA_MORE_BYTES);
    row.by = row_read_short(&reader, CALLER_NAME_BYTES_MAX);
    row.op_id = row_read_short(&reader, OP_ID_BYTES_MAX);
    row.payload = read_hash(&reader);
    if (!known || reader_finish(&reader) != ERR_OK || !makes_sense(&row))
        return ERR_CORRUPT;
    *ret_row = row;
    return ERR_OK;
}

err metadata_key_parse(struct slice key, uint64_t *ret_collection, struct slice *ret_target)
{
    if (key.size <= KEY_HEAD || key.data[0] != TABLE_METADATA)
        return ERR_CORRUPT;
    struct reader reader = reader_from((struct slice){ key.data + 1, KEY_HEAD - 1 });
    *ret_collection = read_u64_be(&reader);
    *ret_target = (struct slice){ key.data + KEY_HEAD, key.size - KEY_HEAD };
    return target_is_sound(*ret_target) ? ERR_OK : ERR_CORRUPT;
}

bool metadata_row_is_sound(struct slice key, struct slice value)
{
    struct metadata_row row;
    struct slice target;
    uint64_t collection;

    return metadata_key_parse(key, &collection, &target) == ERR_OK &&
           metadata_row_decode(value, &row) == ERR_OK;
}
