#include "node/core/favorite/favorite_row.h"

#include <string.h>

#include "node/core/codec/text_rule.h"

#define ROW_VERSION 1u

void favorite_row_encode(const struct favorite_row *row, struct buf *out)
{
    buf_put_u8(out, ROW_VERSION);
    buf_put_u8(out, row->favorited);
    buf_put_u64(out, row->ver);
    buf_put_u64(out, row->at_ms);
}

err favorite_row_decode(struct slice value, struct favorite_row *ret_row)
{
    struct reader reader = reader_from(value);
    struct favorite_row row;

    bool known = read_u8(&reader) == ROW_VERSION;
    uint8_t favorited = read_u8(&reader);
    row.favorited = favorited != 0;
    row.ver = read_u64(&reader);
    row.at_ms = read_u64(&reader);
    if (!known || favorited > 1 || row.ver == 0 || reader_finish(&reader) != ERR_OK)
        return ERR_CORRUPT;
    *ret_row = row;
    return ERR_OK;
}

void favorites_row_encode(const struct favorites_row *row, struct buf *out)
{
    buf_put_u8(out, ROW_VERSION);
    buf_put_u32(out, row->edges);
    buf_put_u32(out, row->gone);
}

err favorites_row_decode(struct slice value, struct favorites_row *ret_row)
{
    struct reader reader = reader_from(value);
    struct favorites_row row;

    bool known = read_u8(&reader) == ROW_VERSION;
    row.edges = read_u32(&reader);
    row.gone = read_u32(&reader);
    if (!known || reader_finish(&reader) != ERR_OK)
        return ERR_CORRUPT;
    *ret_row = row;
    return ERR_OK;
}

/* One number behind the version. */
static void number_encode(uint64_t number, struct buf *out)
{
    buf_put_u8(out, ROW_VERSION);
    buf_put_u64(out, number);
}

static err number_decode(struct slice value, uint64_t *ret_number)
{
    struct reader reader = reader_from(value);

    bool known = read_u8(&reader) == ROW_VERSION;
    uint64_t number = read_u64(&reader);
    if (!known || reader_finish(&reader) != ERR_OK)
        return ERR_CORRUPT;
    *ret_number = number;
    return ERR_OK;
}

/* Up to a 0, which the reader is behind then. */
static struct slice read_text(struct reader *reader)
{
    size_t left = reader_left(reader);
    const uint8_t *end = left > 0 ? memchr(reader->at, 0, left) : NULL;

    if (end == NULL) {
        reader->bad = true;
        return (struct slice){ 0 };
    }
    struct slice text = read_raw(reader, (size_t)(end - reader->at));
    (void)read_u8(reader);
    return text;
}

static struct slice read_rest(struct reader *reader)
{
    return read_raw(reader, reader_left(reader));
}

static bool is_entity(struct slice entity)
{
    return entity.size <= ENTITY_BYTES_MAX && entity_has_kind(entity);
}

bool target_is_sound(struct slice target)
{
    return target.size > 0 && target.size <= TARGET_ID_MAX && text_is_clean(target);
}

/* Behind the letter. */
static bool read_key(struct reader *reader, enum table table, struct favorite_key *key)
{
    bool of_target = table == TABLE_FAVORER || table == TABLE_ADDER;

    if (!of_target && table != TABLE_PARTIAL)
        key->entity = read_text(reader);
    key->collection = read_u64_be(reader);
    if (table == TABLE_FAVORED) {
        key->part = (char)read_u8(reader);
        key->at_ms = read_u64_be(reader);
        if (key->part == FAVORED_EDGES)
            key->at_ms = ~key->at_ms;
        reader->bad |= key->part != FAVORED_EDGES && key->part != FAVORED_GONE;
    }
    if (of_target) {
        key->target = read_text(reader);
        key->entity = read_rest(reader);
    } else if (table != TABLE_FAVORITES) {
        key->target = read_rest(reader);
    }
    return (table == TABLE_PARTIAL || is_entity(key->entity)) &&
           (table == TABLE_FAVORITES || target_is_sound(key->target)) && key->collection != 0;
}

err favorite_key_parse(struct slice bytes, struct favorite_key *ret_key)
{
    struct reader reader = reader_from(bytes);
    struct favorite_key key = { 0 };
    enum table table = (enum table)read_u8(&reader);

    if (table != TABLE_FAVORITE && table != TABLE_FAVORITES && table != TABLE_FAVORED &&
        table != TABLE_FAVORER && table != TABLE_PARTIAL && table != TABLE_ADDED &&
        table != TABLE_ADDER)
        return ERR_CORRUPT;
    bool sound = read_key(&reader, table, &key);
    if (!sound || reader_finish(&reader) != ERR_OK)
        return ERR_CORRUPT;
    *ret_key = key;
    return ERR_OK;
}

void favored_row_encode(uint64_t ver, struct buf *out)
{
    number_encode(ver, out);
}

err favored_row_decode(struct slice key, struct slice value, struct favorite_key *ret_key,
                       uint64_t *ret_ver)
{
    if (number_decode(value, ret_ver) != ERR_OK || *ret_ver == 0)
        return ERR_CORRUPT;
    return favorite_key_parse(key, ret_key);
}

void favorer_row_encode(uint64_t at_ms, struct buf *out)
{
    number_encode(at_ms, out);
}

err favorer_row_decode(struct slice key, struct slice value, struct favorite_key *ret_key,
                       uint64_t *ret_at_ms)
{
    if (number_decode(value, ret_at_ms) != ERR_OK)
        return ERR_CORRUPT;
    return favorite_key_parse(key, ret_key);
}
