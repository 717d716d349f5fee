#include "node/core/favorite/favorite_row.h"

#include <string.h>

#include "node/core/codec/text_rule.h"

#define ROW_VERSION         1u
#define ROW_VERSION_FLAGGED 2u /* Of what is flagged: apply version 8 reads all others. */

/* ---- flags ---- */
static void flag_put(const struct favorite_row *row, struct buf *out)
{
    buf_put_u8(out, row->flag);
    buf_put_u64(out, row->flagged_at_ms);
}

/* An edge waits since it was made, or later. One that is gone waits for nothing, and only what a
 * moderator decided is remembered of it. */
static bool flag_is_sound(const struct favorite_row *row)
{
    if (row->favorited)
        return row->flag >= FLAG_ACCOUNT_AGE && row->flag <= FLAG_REJECTED &&
               row->flagged_at_ms >= row->at_ms;
    return (row->flag == FLAG_MODERATION || row->flag == FLAG_REJECTED) && row->flagged_at_ms == 0;
}

static void flag_read(struct reader *reader, struct favorite_row *row)
{
    row->flag = read_u8(reader);
    row->flagged_at_ms = read_u64(reader);
    reader->bad |= !flag_is_sound(row);
}

static uint8_t version_of(bool flagged)
{
    return flagged ? ROW_VERSION_FLAGGED : ROW_VERSION;
}

/* Whether what is flagged follows. */
static bool version_read(struct reader *reader)
{
    uint8_t version = read_u8(reader);

    reader->bad |= version != ROW_VERSION && version != ROW_VERSION_FLAGGED;
    return version == ROW_VERSION_FLAGGED;
}

/* ---- rows ---- */
void favorite_row_encode(const struct favorite_row *row, struct buf *out)
{
    buf_put_u8(out, version_of(row->flag > 0));
    buf_put_u8(out, row->favorited);
    buf_put_u64(out, row->ver);
    buf_put_u64(out, row->at_ms);
    if (row->flag > 0)
        flag_put(row, out);
}

err favorite_row_decode(struct slice value, struct favorite_row *ret_row)
{
    struct reader reader = reader_from(value);
    struct favorite_row row = { 0 };

    bool flagged = version_read(&reader);
    uint8_t favorited = read_u8(&reader);
    row.favorited = favorited != 0;
    row.ver = read_u64(&reader);
    row.at_ms = read_u64(&reader);
    if (flagged)
        flag_read(&reader, &row);
    if (favorited > 1 || row.ver == 0 || reader_finish(&reader) != ERR_OK)
        return ERR_CORRUPT;
    *ret_row = row;
    return ERR_OK;
}

void favorites_row_encode(const struct favorites_row *row, struct buf *out)
{
    buf_put_u8(out, version_of(row->flagged > 0));
    buf_put_u32(out, row->edges);
    buf_put_u32(out, row->gone);
    if (row->flagged > 0)
        buf_put_u32(out, row->flagged);
}

err favorites_row_decode(struct slice value, struct favorites_row *ret_row)
{
    struct reader reader = reader_from(value);
    struct favorites_row row = { 0 };

    bool flagged = version_read(&reader);
    row.edges = read_u32(&reader);
    row.gone = read_u32(&reader);
    if (flagged) {
        row.flagged = read_u32(&reader);
        reader.bad |= row.flagged == 0 || row.flagged > row.edges;
    }
    if (reader_finish(&reader) != ERR_OK)
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

void favorer_row_encode(const struct favorite_row *edge, struct buf *out)
{
    buf_put_u8(out, version_of(edge->flag > 0));
    buf_put_u64(out, edge->at_ms);
    if (edge->flag > 0)
        flag_put(edge, out);
}

err favorer_row_read(struct slice key, struct slice value, struct favorite_key *ret_key,
                     struct favorite_row *ret_edge)
{
    struct reader reader = reader_from(value);
    struct favorite_row edge = { .favorited = true };

    bool flagged = version_read(&reader);
    edge.at_ms = read_u64(&reader);
    if (flagged)
        flag_read(&reader, &edge);
    if (reader_finish(&reader) != ERR_OK)
        return ERR_CORRUPT;
    *ret_edge = edge;
    return favorite_key_parse(key, ret_key);
}

err favorer_row_decode(struct slice key, struct slice value, struct favorite_key *ret_key,
                       uint64_t *ret_at_ms)
{
    struct favorite_row edge;

    err e = favorer_row_read(key, value, ret_key, &edge);
    if (e == ERR_OK)
        *ret_at_ms = edge.at_ms;
    return e;
}

/* ---- what waits for a review ---- */
void review_key(struct row_key *key, const struct favorite_key *edge, uint64_t flagged_at_ms)
{
    row_key_review(key, flagged_at_ms, edge->entity, edge->collection);
    row_key_review_add(key, edge->target);
}

err review_key_parse(struct slice key, struct favorite_key *ret_edge)
{
    struct reader reader = reader_from(key);
    struct favorite_key edge = { 0 };

    bool known = read_u8(&reader) == TABLE_REVIEW;
    edge.at_ms = read_u64_be(&reader);
    edge.entity = read_text(&reader);
    edge.collection = read_u64_be(&reader);
    edge.target = read_rest(&reader);
    if (!known || reader.bad || !is_entity(edge.entity) || edge.collection == 0 ||
        !target_is_sound(edge.target))
        return ERR_CORRUPT;
    *ret_edge = edge;
    return ERR_OK;
}

void review_row_encode(const struct favorite_row *edge, struct buf *out)
{
    buf_put_u8(out, ROW_VERSION);
    buf_put_u8(out, edge->flag);
    buf_put_u64(out, edge->at_ms);
}

err review_row_decode(struct slice key, struct slice value, struct review_row *ret_row)
{
    struct reader reader = reader_from(value);
    struct review_row row = { 0 };

    err e = review_key_parse(key, &row.edge);
    bool known = read_u8(&reader) == ROW_VERSION;
    row.flag = read_u8(&reader);
    row.made_at_ms = read_u64(&reader);
    if (e != ERR_OK || !known || row.flag < FLAG_ACCOUNT_AGE || row.flag > FLAG_REJECTED ||
        row.made_at_ms > row.edge.at_ms || reader_finish(&reader) != ERR_OK)
        return ERR_CORRUPT;
    *ret_row = row;
    return ERR_OK;
}
