#include "node/rpc/fixture_nonsense.h"

#include <string.h>

#include "holdfast/internal/v1/channel.pb-c.h"
#include "holdfast/internal/v1/definition.pb-c.h"
#include "holdfast/internal/v1/transaction.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/rows/rows.h"

#define LONG_TEXT   300u /* No length in one byte, no id, no name is so long. */
#define NUMBER_STEP 4u

/* A protobuf message, walked until the leaf of that number. */
struct walk {
    struct arena *arena;
    uint32_t left;
    bool done;
};

static void walk_message(struct walk *walk, ProtobufCMessage *message);

static void lengthen(struct walk *walk, char **text)
{
    struct buf longer = { 0 };

    buf_append(&longer, *text, strlen(*text));
    while (longer.size < LONG_TEXT)
        buf_put_u8(&longer, 'a');
    *text = arena_text(walk->arena, buf_slice(&longer));
    buf_deinit(&longer);
}

static void spoil_leaf(struct walk *walk, ProtobufCType type, void *leaf)
{
    ProtobufCBinaryData *bytes = leaf;

    if (walk->left-- > 0)
        return;
    walk->done = true;
    switch (type) {
    case PROTOBUF_C_TYPE_STRING:
        lengthen(walk, leaf);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        bytes->len = LONG_TEXT;
        bytes->data = arena_alloc(walk->arena, LONG_TEXT);
        memset(bytes->data, 0xff, LONG_TEXT);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        *(int64_t *)leaf = INT64_MAX;
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)leaf = !*(protobuf_c_boolean *)leaf;
        break;
    default:
        *(uint32_t *)leaf = UINT32_MAX;
    }
}

static void walk_value(struct walk *walk, const ProtobufCFieldDescriptor *field, void *value)
{
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        if (*(ProtobufCMessage **)value != NULL)
            walk_message(walk, *(ProtobufCMessage **)value);
        return;
    }
    spoil_leaf(walk, field->type, value);
}

static size_t size_of(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
    case PROTOBUF_C_TYPE_STRING:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        return sizeof(int64_t);
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    default:
        return sizeof(uint32_t);
    }
}

static void walk_message(struct walk *walk, ProtobufCMessage *message)
{
    for (unsigned i = 0; i < message->descriptor->n_fields && !walk->done; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        uint8_t *base = (uint8_t *)message;
        bool chosen = (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
        if (chosen && *(uint32_t *)(void *)(base + field->quantifier_offset) != field->id)
            continue;
        if (field->label != PROTOBUF_C_LABEL_REPEATED) {
            walk_value(walk, field, base + field->offset);
            continue;
        }
        size_t count = *(size_t *)(void *)(base + field->quantifier_offset);
        uint8_t *list = *(uint8_t **)(void *)(base + field->offset);
        for (size_t j = 0; j < count && !walk->done; j++)
            walk_value(walk, field, list + j * size_of(field));
    }
}

static const ProtobufCMessageDescriptor *message_of(struct slice key)
{
    switch (key.data[0]) {
    case TABLE_MAIL:
        return &holdfast__v1__mail__descriptor;
    case TABLE_CHANNEL:
        return key.data[1] == 'o' ? &holdfast__internal__v1__channel_out_row__descriptor
                                  : &holdfast__internal__v1__channel_in_row__descriptor;
    case TABLE_OUTBOX:
        return &holdfast__internal__v1__outbox_row__descriptor;
    case TABLE_INBOX:
        return &holdfast__internal__v1__inbox_row__descriptor;
    case TABLE_INTENT:
        return &holdfast__internal__v1__txn_intent__descriptor;
    case TABLE_TXN:
        return &holdfast__internal__v1__txn_row__descriptor;
    case TABLE_RECEIPT:
        return &holdfast__internal__v1__receipt_row__descriptor;
    case TABLE_DEFINITION:
        return key.data[key.size - 1] == 0 ? &holdfast__internal__v1__defined_head__descriptor
                                           : &holdfast__internal__v1__defined__descriptor;
    default:
        return NULL;
    }
}

/* Eight bytes anywhere that make a number near the end of int64, whatever its byte order. */
static bool spoil_numbers(struct slice row, uint32_t way, struct buf *out)
{
    size_t at = (size_t)way * NUMBER_STEP;

    if (at >= row.size)
        return false;
    buf_append(out, row.data, row.size);
    for (size_t i = at; i < at + sizeof(int64_t) && i < row.size; i++)
        out->data[i] = 0x7f;
    return true;
}

static bool spoil_item(struct slice key, struct slice row, uint32_t way, struct buf *out)
{
    struct item_row item;
    struct buf longer = { 0 };

    if (way > 1 || item_row_decode(key, row, &item) != ERR_OK)
        return false;
    struct slice *text = way == 0 ? &item.kind : &item.attributes;
    for (size_t i = 0; i < LONG_TEXT * (way == 0 ? 1 : 100); i++)
        buf_put_u8(&longer, 'a');
    *text = buf_slice(&longer);
    item_row_encode(&item, out);
    buf_deinit(&longer);
    return true;
}

bool nonsense_message(const ProtobufCMessageDescriptor *descriptor, struct slice row, uint32_t way,
                      struct buf *out)
{
    struct arena arena = { 0 };
    struct walk walk = { .arena = &arena, .left = way };
    ProtobufCMessage *message = arena_unpack(&arena, descriptor, row);

    if (message != NULL)
        walk_message(&walk, message);
    if (walk.done) {
        struct slice packed = arena_pack(&arena, message);
        buf_append(out, packed.data, packed.size);
    }
    arena_deinit(&arena);
    return walk.done;
}

bool nonsense_make(struct slice key, struct slice row, uint32_t way, struct buf *out)
{
    const ProtobufCMessageDescriptor *descriptor = message_of(key);

    if (descriptor != NULL)
        return nonsense_message(descriptor, row, way, out);
    if (key.data[0] == TABLE_ITEM)
        return spoil_item(key, row, way, out);
    return spoil_numbers(row, way, out);
}
