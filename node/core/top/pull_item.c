#include "node/core/top/pull_item.h"

#include "runtime/base/check.h"

#define PART_MORE    1u
#define PART_EMPTIED 2u

static void dot_put(struct source_dot dot, struct buf *out)
{
    buf_put_u64(out, dot.epoch);
    buf_put_u64(out, dot.counter);
}

static struct source_dot dot_read(struct reader *reader)
{
    uint64_t epoch = read_u64(reader);
    return (struct source_dot){ epoch, read_u64(reader) };
}

static bool is_left(const struct reader *reader)
{
    return !reader->bad && reader_left(reader) > 0;
}

void pull_item_encode(const struct pull_item *item, struct buf *out)
{
    CHECK(item->target.size <= TARGET_ID_MAX);
    dot_put(item->dot, out);
    buf_put_u64(out, item->collection);
    buf_put_u8(out, (uint8_t)item->target.size);
    buf_append(out, item->target.data, item->target.size);
    buf_put_u64(out, item->count);
    hours_encode(&item->hours, out);
}

bool pull_item_next(struct reader *reader, struct pull_item *ret_item)
{
    if (!is_left(reader))
        return false;
    ret_item->dot = dot_read(reader);
    ret_item->collection = read_u64(reader);
    ret_item->target = read_raw(reader, read_u8(reader));
    ret_item->count = read_u64(reader);
    hours_read(reader, &ret_item->hours);
    if (reader->bad)
        return false;
    reader->bad |= ret_item->dot.epoch == 0 || ret_item->collection == 0 ||
                   ret_item->count > INT64_MAX || !target_is_sound(ret_item->target) ||
                   hours_sum(&ret_item->hours, UINT32_MAX, UINT32_MAX) > ret_item->count;
    return !reader->bad;
}

void pull_home_encode(const struct pull_home *home, struct buf *out)
{
    buf_put_u16(out, (uint16_t)home->home);
    dot_put(home->after, out);
}

bool pull_home_next(struct reader *reader, struct pull_home *ret_home)
{
    if (!is_left(reader))
        return false;
    ret_home->home = read_u16(reader);
    ret_home->after = dot_read(reader);
    return !reader->bad;
}

void pull_part_encode(const struct pull_part *part, struct buf *out)
{
    buf_put_u16(out, (uint16_t)part->home);
    buf_put_u8(out, (uint8_t)((part->more ? PART_MORE : 0) | (part->emptied ? PART_EMPTIED : 0)));
    dot_put(part->to, out);
    buf_put_bytes(out, part->items);
}

bool pull_part_next(struct reader *reader, struct pull_part *ret_part)
{
    if (!is_left(reader))
        return false;
    ret_part->home = read_u16(reader);
    uint8_t flags = read_u8(reader);
    ret_part->more = (flags & PART_MORE) != 0;
    ret_part->emptied = (flags & PART_EMPTIED) != 0;
    ret_part->to = dot_read(reader);
    ret_part->items = read_bytes(reader, PULL_PART_BYTES_MAX + PULL_ITEM_BYTES_MAX);
    return !reader->bad;
}
