#include "node/core/handler/event_row.h"

#include <string.h>

#include "idl/limit.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/op.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"
#include "runtime/base/hex.h"

#define ROW_VERSION 1u

/* What each kind's body is; NULL: of a kind that this program does not know. */
static const ProtobufCMessageDescriptor *body_of(Holdfast__V1__EventKind kind)
{
    switch ((int)kind) {
    case HOLDFAST__V1__EVENT_KIND__EVENT_KIND_FAVORITE:
        return &holdfast__v1__favorite_event__descriptor;
    case HOLDFAST__V1__EVENT_KIND__EVENT_KIND_LEDGER:
        return &holdfast__v1__ledger_event__descriptor;
    case HOLDFAST__V1__EVENT_KIND__EVENT_KIND_SESSION:
        return &holdfast__v1__session_event__descriptor;
    case HOLDFAST__V1__EVENT_KIND__EVENT_KIND_DEFINITION:
        return &holdfast__v1__definition_event__descriptor;
    case HOLDFAST__V1__EVENT_KIND__EVENT_KIND_ERASURE:
        return &holdfast__v1__erasure_event__descriptor;
    default:
        return NULL;
    }
}

/* ---- places ---- */
void event_place_print(const struct event_place *place, uint8_t ret_bytes[EVENT_PLACE_BYTES])
{
    struct row_key key;

    event_row_key(&key, place);
    CHECK(key.size == 1 + EVENT_PLACE_BYTES);
    memcpy(ret_bytes, key.bytes + 1, EVENT_PLACE_BYTES);
}

static void read_place(struct reader *reader, struct event_place *place)
{
    place->epoch = read_u64_be(reader);
    place->counter = read_u64_be(reader);
    uint32_t high = read_u16_be(reader);
    place->place = high << 16 | read_u16_be(reader);
}

err event_place_parse(struct slice bytes, struct event_place *ret_place)
{
    struct reader reader = reader_from(bytes);
    struct event_place place;

    read_place(&reader, &place);
    if (reader_finish(&reader) != ERR_OK)
        return ERR_INVALID;
    *ret_place = place;
    return ERR_OK;
}

void event_row_key(struct row_key *key, const struct event_place *place)
{
    row_key_event(key, place->epoch, place->counter, place->place);
}

err event_key_parse(struct slice key, struct event_place *ret_place)
{
    struct reader reader = reader_from(key);
    struct event_place place;
    bool known = read_u8(&reader) == TABLE_EVENT;

    read_place(&reader, &place);
    if (!known || reader_finish(&reader) != ERR_OK || place.epoch == 0)
        return ERR_CORRUPT;
    *ret_place = place;
    return ERR_OK;
}

/* ---- values ---- */
static bool is_of_ledger(const struct event_row *row)
{
    return row->kind == HOLDFAST__V1__EVENT_KIND__EVENT_KIND_LEDGER;
}

void event_row_encode(const struct event_row *row, struct buf *out)
{
    buf_put_u8(out, ROW_VERSION);
    buf_put_u8(out, (uint8_t)row->kind);
    buf_put_compact(out, row->at_ms);
    buf_put_short(out, row->entity);
    if (is_of_ledger(row)) {
        buf_put_compact(out, row->ledger_seq);
        return;
    }
    buf_put_compact(out, row->owner);
    buf_put_short(out, row->op_id);
    buf_append(out, row->body.data, row->body.size);
}

void event_lost_encode(struct buf *out)
{
    event_row_encode(&(struct event_row){ 0 }, out);
}

bool event_row_is_lost(const struct event_row *row)
{
    return row->kind == HOLDFAST__V1__EVENT_KIND__EVENT_KIND_UNSPECIFIED;
}

struct slice row_read_short(struct reader *reader, size_t size_max)
{
    size_t size = read_u8(reader);

    reader->bad |= size > size_max;
    return read_raw(reader, size);
}

err event_row_decode(struct slice value, struct event_row *ret_row)
{
    struct reader reader = reader_from(value);
    struct event_row row = { 0 };
    bool known = read_u8(&reader) == ROW_VERSION;

    row.kind = (Holdfast__V1__EventKind)read_u8(&reader);
    row.at_ms = read_compact(&reader);
    row.entity = row_read_short(&reader, EVENT_ENTITY_MAX);
    if (is_of_ledger(&row)) {
        row.ledger_seq = read_compact(&reader);
        reader.bad |= row.ledger_seq == 0;
    } else {
        row.owner = read_compact(&reader);
        row.op_id = row_read_short(&reader, OP_ID_BYTES_MAX);
        row.body = read_raw(&reader, reader_left(&reader));
    }
    if (!known || reader_finish(&reader) != ERR_OK)
        return ERR_CORRUPT;
    if (!event_row_is_lost(&row) && row.entity.size == 0)
        return ERR_CORRUPT;
    *ret_row = row;
    return ERR_OK;
}

bool event_row_is_sound(struct arena *arena, struct slice key, struct slice value)
{
    struct event_place place;
    struct event_row row;

    if (event_key_parse(key, &place) != ERR_OK || event_row_decode(value, &row) != ERR_OK)
        return false;
    if (event_row_is_lost(&row))
        return row.body.size == 0;
    if (is_of_ledger(&row))
        return true; /* That its entry is there: ListShardEvents. */
    const ProtobufCMessageDescriptor *type = body_of(row.kind);
    return type != NULL && arena_unpack(arena, type, row.body) != NULL;
}

/* ---- telling ---- */
static char *seq_text(struct arena *arena, const struct event_place *place)
{
    uint8_t bytes[EVENT_PLACE_BYTES];
    char *text = arena_zalloc(arena, 2 * sizeof bytes + 1);

    event_place_print(place, bytes);
    hex_print(bytes, sizeof bytes, text);
    return text;
}

/* Of a ledger's entry the row has no body: an empty one is none that cannot be read. */
static void *body_read(struct arena *arena, const struct event_row *row)
{
    const ProtobufCMessageDescriptor *type = body_of(row->kind);

    return type != NULL ? arena_unpack(arena, type, row->body) : NULL;
}

Holdfast__V1__Event *event_tell(struct arena *arena, uint32_t shard,
                                const struct event_place *place, const struct event_row *row)
{
    void *body = body_read(arena, row);
    Holdfast__V1__Event *event = (void *)arena_message(arena, &holdfast__v1__event__descriptor);

    if (body == NULL)
        return NULL;
    event->shard = shard;
    event->seq = seq_text(arena, place);
    event->dot = (void *)arena_message(arena, &holdfast__v1__dot__descriptor);
    event->dot->epoch = place->epoch;
    event->dot->owner = row->owner;
    event->dot->counter = place->counter;
    event->at_ms = (int64_t)row->at_ms;
    event->kind = row->kind;
    event->entity = arena_text(arena, row->entity);
    event->op_id = arena_text(arena, row->op_id);
    switch ((int)row->kind) {
    case HOLDFAST__V1__EVENT_KIND__EVENT_KIND_FAVORITE:
        event->body_case = HOLDFAST__V1__EVENT__BODY_FAVORITE;
        event->favorite = body;
        break;
    case HOLDFAST__V1__EVENT_KIND__EVENT_KIND_LEDGER:
        event->body_case = HOLDFAST__V1__EVENT__BODY_LEDGER;
        event->ledger = body;
        event->ledger->seq = row->ledger_seq;
        break;
    case HOLDFAST__V1__EVENT_KIND__EVENT_KIND_SESSION:
        event->body_case = HOLDFAST__V1__EVENT__BODY_SESSION;
        event->session = body;
        break;
    case HOLDFAST__V1__EVENT_KIND__EVENT_KIND_ERASURE:
        event->body_case = HOLDFAST__V1__EVENT__BODY_ERASURE;
        event->erasure = body;
        break;
    default:
        event->body_case = HOLDFAST__V1__EVENT__BODY_DEFINITION;
        event->definition = body;
        break;
    }
    return event;
}
