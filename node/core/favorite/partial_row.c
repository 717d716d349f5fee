#include "node/core/favorite/partial_row.h"

#define ROW_VERSION       2u
#define ROW_VERSION_FIRST 1u /* The count alone. */

void partial_row_encode(const struct partial_row *row, struct buf *out)
{
    if (row->changed.epoch == 0) {
        buf_put_u8(out, ROW_VERSION_FIRST);
        buf_put_u64(out, row->count);
        return;
    }
    buf_put_u8(out, ROW_VERSION);
    buf_put_u64(out, row->count);
    buf_put_u64(out, row->changed.epoch);
    buf_put_u64(out, row->changed.counter);
    hours_encode(&row->hours, out);
}

err partial_row_decode(struct slice value, struct partial_row *ret_row)
{
    struct reader reader = reader_from(value);
    uint8_t version = read_u8(&reader);

    *ret_row = (struct partial_row){ .count = read_u64(&reader) };
    if (version == ROW_VERSION) {
        ret_row->changed.epoch = read_u64(&reader);
        ret_row->changed.counter = read_u64(&reader);
        hours_read(&reader, &ret_row->hours);
        reader.bad |= ret_row->changed.epoch == 0;
    } else {
        reader.bad |= version != ROW_VERSION_FIRST || ret_row->count == 0;
    }
    reader.bad |= hours_sum(&ret_row->hours, UINT32_MAX, UINT32_MAX) > ret_row->count;
    return reader_finish(&reader) == ERR_OK ? ERR_OK : ERR_CORRUPT;
}
