#include "runtime/cluster/event_cursor.h"

#include <string.h>

#include "runtime/base/base64.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "runtime/cluster/record_shape.h"

#define VERSION_PLAIN  1u
#define VERSION_COUNTS 2u
#define HASH_BYTES     8u

enum known_form { KNOWN_NOTHING, KNOWN_PLACE, KNOWN_COUNTED };

static uint64_t newest_ms(const struct event_cursor *cursor)
{
    uint64_t newest = 0;

    for (uint32_t i = 0; i < cursor->shard_count; i++) {
        const struct event_known *known = &cursor->known[i];
        if (known->any && known->passed > 0 && known->passed_ms > newest)
            newest = known->passed_ms;
    }
    return newest;
}

static void put_known(const struct event_known *known, bool counts, uint64_t newest,
                      struct buf *out)
{
    struct reader reader = reader_from((struct slice){ known->place, EVENT_CURSOR_PLACE_BYTES });
    uint64_t epoch = read_u64_be(&reader);
    uint64_t counter = read_u64_be(&reader);
    uint32_t high = read_u16_be(&reader);
    uint32_t place = high << 16 | read_u16_be(&reader);
    bool counted = counts && known->passed > 0;

    buf_put_u8(out, !known->any ? KNOWN_NOTHING : counted ? KNOWN_COUNTED : KNOWN_PLACE);
    if (!known->any)
        return;
    buf_put_u32(out, known->life);
    buf_put_compact(out, epoch);
    buf_put_compact(out, counter);
    buf_put_compact(out, (uint32_t)(place + 1u)); /* All of an entry, mostly: 0 then. */
    if (!counted)
        return;
    buf_put_compact(out, known->passed);
    buf_put_compact(out, newest - known->passed_ms);
}

static void put_be(uint8_t *to, uint64_t number, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)(number >> (8 * (bytes - 1 - i)));
}

static void read_known(struct reader *reader, bool counts, uint64_t newest,
                       struct event_known *known)
{
    uint8_t form = read_u8(reader);

    reader->bad |= form > (counts ? KNOWN_COUNTED : KNOWN_PLACE);
    known->any = form != KNOWN_NOTHING;
    if (!known->any || reader->bad)
        return;
    known->life = read_u32(reader);
    put_be(known->place, read_compact(reader), 8);
    put_be(known->place + 8, read_compact(reader), 8);
    uint64_t place = read_compact(reader);
    reader->bad |= place > UINT32_MAX;
    put_be(known->place + 16, (uint32_t)place - 1u, 4);
    if (form != KNOWN_COUNTED)
        return;
    known->passed = read_compact(reader);
    uint64_t behind_ms = read_compact(reader);
    reader->bad |= known->passed == 0 || behind_ms > newest;
    known->passed_ms = reader->bad ? 0 : newest - behind_ms;
}

static bool read_all(struct slice bytes, uint32_t shard_count, struct arena *arena,
                     struct event_cursor *ret_cursor)
{
    if (bytes.size <= HASH_BYTES)
        return false;
    struct slice body = { bytes.data, bytes.size - HASH_BYTES };
    struct reader hash = reader_from((struct slice){ bytes.data + body.size, HASH_BYTES });
    struct reader reader = reader_from(body);
    struct event_cursor cursor;

    uint8_t version = read_u8(&reader);
    uint64_t shards = read_compact(&reader);
    if (read_u64(&hash) != hash_u64(body) ||
        (version != VERSION_PLAIN && version != VERSION_COUNTS) || shards == 0 ||
        shards > CLUSTER_SHARDS_MAX || (shard_count != 0 && shards != shard_count))
        return false;
    event_cursor_init(&cursor, (uint32_t)shards, arena);
    uint64_t turn = read_compact(&reader);
    cursor.counts = version == VERSION_COUNTS;
    uint64_t newest = cursor.counts ? read_compact(&reader) : 0;
    for (uint32_t i = 0; i < cursor.shard_count && !reader.bad; i++)
        read_known(&reader, cursor.counts, newest, &cursor.known[i]);
    if (turn >= cursor.shard_count || reader_finish(&reader) != ERR_OK)
        return false;
    cursor.turn = (uint32_t)turn;
    *ret_cursor = cursor;
    return true;
}

void event_cursor_init(struct event_cursor *cursor, uint32_t shard_count, struct arena *arena)
{
    CHECK(shard_count > 0);
    *cursor = (struct event_cursor){
        .shard_count = shard_count,
        .known = arena_zalloc(arena, shard_count * sizeof *cursor->known),
    };
}

err event_cursor_decode(struct slice text, uint32_t shard_count, struct arena *arena,
                        struct event_cursor *ret_cursor)
{
    uint8_t *bytes = arena_alloc(arena, base64_size_max(text.size) + 1);
    size_t size = 0;

    if (base64_decode_url(text, bytes, &size) &&
        read_all((struct slice){ bytes, size }, shard_count, arena, ret_cursor))
        return ERR_OK;
    return ERR_INVALID;
}

char *event_cursor_print(const struct event_cursor *cursor, struct arena *arena)
{
    uint64_t newest = newest_ms(cursor);
    struct buf bytes = { 0 };
    struct buf text = { 0 };

    CHECK(cursor->turn < cursor->shard_count);
    buf_put_u8(&bytes, cursor->counts ? VERSION_COUNTS : VERSION_PLAIN);
    buf_put_compact(&bytes, cursor->shard_count);
    buf_put_compact(&bytes, cursor->turn);
    if (cursor->counts)
        buf_put_compact(&bytes, newest);
    for (uint32_t i = 0; i < cursor->shard_count; i++)
        put_known(&cursor->known[i], cursor->counts, newest, &bytes);
    buf_put_u64(&bytes, hash_u64(buf_slice(&bytes)));
    base64_encode_url(buf_slice(&bytes), &text);
    char *printed = arena_printf(arena, "%.*s", (int)text.size, (const char *)text.data);
    buf_deinit(&bytes);
    buf_deinit(&text);
    return printed;
}

bool event_cursor_goes_back(const struct event_cursor *earlier, const struct event_cursor *later)
{
    CHECK(earlier->shard_count == later->shard_count);
    for (uint32_t i = 0; i < earlier->shard_count; i++) {
        const struct event_known *was = &earlier->known[i];
        const struct event_known *is = &later->known[i];
        if (was->any && !is->any)
            return true;
        if (was->any && was->life == is->life &&
            memcmp(is->place, was->place, EVENT_CURSOR_PLACE_BYTES) < 0)
            return true;
    }
    return false;
}

uint64_t event_cursor_passed_ms(const struct event_cursor *cursor, uint32_t first, uint32_t last)
{
    uint64_t passed_ms = UINT64_MAX;

    CHECK(first <= last && last < cursor->shard_count);
    for (uint32_t i = first; i <= last; i++) {
        const struct event_known *known = &cursor->known[i];
        if (!known->any || known->passed == 0)
            return 0;
        if (known->passed_ms < passed_ms)
            passed_ms = known->passed_ms;
    }
    return passed_ms;
}
