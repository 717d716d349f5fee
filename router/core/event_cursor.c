#include "router/core/event_cursor.h"

#include <string.h>

#include "router/core/refusal.h"
#include "runtime/base/base64.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"

#define VERSION    1u
#define HASH_BYTES 8u
#define TOLD_MAX   64u /* Of a text that is no cursor. */

static void put_known(const struct event_known *known, struct buf *out)
{
    struct reader reader = reader_from((struct slice){ known->place, EVENT_PLACE_BYTES });
    uint64_t epoch = read_u64_be(&reader);
    uint64_t counter = read_u64_be(&reader);
    uint32_t high = read_u16_be(&reader);
    uint32_t place = high << 16 | read_u16_be(&reader);

    buf_put_u8(out, known->any);
    if (!known->any)
        return;
    buf_put_u32(out, known->life);
    buf_put_compact(out, epoch);
    buf_put_compact(out, counter);
    buf_put_compact(out, (uint32_t)(place + 1u)); /* All of an entry, mostly: 0 then. */
}

static void put_be(uint8_t *to, uint64_t number, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)(number >> (8 * (bytes - 1 - i)));
}

static void read_known(struct reader *reader, struct event_known *known)
{
    uint8_t any = read_u8(reader);

    reader->bad |= any > 1;
    known->any = any == 1;
    if (!known->any || reader->bad)
        return;
    known->life = read_u32(reader);
    put_be(known->place, read_compact(reader), 8);
    put_be(known->place + 8, read_compact(reader), 8);
    uint64_t place = read_compact(reader);
    reader->bad |= place > UINT32_MAX;
    put_be(known->place + 16, (uint32_t)place - 1u, 4);
}

static bool read_all(struct slice bytes, struct event_cursor *cursor)
{
    if (bytes.size <= HASH_BYTES)
        return false;
    struct slice body = { bytes.data, bytes.size - HASH_BYTES };
    struct reader hash = reader_from((struct slice){ bytes.data + body.size, HASH_BYTES });
    struct reader reader = reader_from(body);

    if (read_u64(&hash) != hash_u64(body) || read_u8(&reader) != VERSION ||
        read_compact(&reader) != cursor->shard_count)
        return false;
    uint64_t turn = read_compact(&reader);
    for (uint32_t i = 0; i < cursor->shard_count && !reader.bad; i++)
        read_known(&reader, &cursor->known[i]);
    if (turn >= cursor->shard_count || reader_finish(&reader) != ERR_OK)
        return false;
    cursor->turn = (uint32_t)turn;
    return true;
}

static void clear(struct event_cursor *cursor)
{
    cursor->turn = 0;
    memset(cursor->known, 0, cursor->shard_count * sizeof *cursor->known);
}

err event_cursor_parse(struct slice text, uint32_t shard_count, struct arena *arena,
                       struct event_cursor *ret_cursor, Holdfast__V1__ErrorDetail *ret_detail)
{
    uint8_t *bytes = arena_alloc(arena, base64_size_max(text.size) + 1);
    size_t size = 0;

    CHECK(shard_count > 0);
    ret_cursor->shard_count = shard_count;
    ret_cursor->known = arena_alloc(arena, shard_count * sizeof *ret_cursor->known);
    clear(ret_cursor);
    if (text.size == 0)
        return ERR_OK;
    if (base64_decode_url(text, bytes, &size) &&
        read_all((struct slice){ bytes, size }, ret_cursor))
        return ERR_OK;
    clear(ret_cursor);
    struct slice told = { text.data, text.size < TOLD_MAX ? text.size : TOLD_MAX };
    refusal_make_field(
        arena, ret_detail,
        &(struct refusal_field){ "cursor", "next_cursor of an answer of this cluster", told },
        "not a cursor of this cluster's events");
    return ERR_INVALID;
}

char *event_cursor_print(const struct event_cursor *cursor, struct arena *arena)
{
    struct buf bytes = { 0 };
    struct buf text = { 0 };

    CHECK(cursor->turn < cursor->shard_count);
    buf_put_u8(&bytes, VERSION);
    buf_put_compact(&bytes, cursor->shard_count);
    buf_put_compact(&bytes, cursor->turn);
    for (uint32_t i = 0; i < cursor->shard_count; i++)
        put_known(&cursor->known[i], &bytes);
    buf_put_u64(&bytes, hash_u64(buf_slice(&bytes)));
    base64_encode_url(buf_slice(&bytes), &text);
    char *printed = arena_printf(arena, "%.*s", (int)text.size, (const char *)text.data);
    buf_deinit(&bytes);
    buf_deinit(&text);
    return printed;
}
