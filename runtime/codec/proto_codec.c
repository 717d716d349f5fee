#include "runtime/codec/proto_codec.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/field_key.h"
#include "runtime/base/utf8.h"
#include "runtime/codec/json_shape.h"

#define MEMORY_PER_BYTE 16u
#define MEMORY_AT_LEAST (64u << 10)

/* Where the walk is, outermost first by `up`; lives on its stack. */
struct wire_path {
    const struct wire_path *up;
    const ProtobufCFieldDescriptor *field; /* NULL: of no field that is known. */
    struct slice message;                  /* The bytes that the field stands in, */
    size_t at;                             /* and where in them its tag begins. */
    struct slice value;                    /* Of a field with bytes. */
};

struct wire {
    struct codec_error *error;
    unsigned depth;
};

enum wire_type { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static uint64_t read_varint(struct reader *reader)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = read_u8(reader);
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return value;
    }
    reader->bad = true;
    return 0;
}

/* The bytes behind a tag; an empty slice for other wire types. */
static struct slice read_value(struct reader *reader, unsigned wire_type)
{
    struct slice none = { 0 };

    switch (wire_type) {
    case WIRE_VARINT:
        read_varint(reader);
        return none;
    case WIRE_64:
        read_raw(reader, 8);
        return none;
    case WIRE_32:
        read_raw(reader, 4);
        return none;
    case WIRE_BYTES:
        return read_raw(reader, read_varint(reader));
    default: /* Groups, which proto3 does not have. */
        reader->bad = true;
        return none;
    }
}

/* ---- what an error names ---- */

/* How many elements of the list stand before this one. */
static size_t place_of(const struct wire_path *path)
{
    struct reader reader = reader_from((struct slice){ path->message.data, path->at });
    size_t count = 0;

    while (reader_left(&reader) > 0 && !reader.bad) {
        uint64_t tag = read_varint(&reader);
        (void)read_value(&reader, tag & 7);
        count += tag >> 3 == path->field->id;
    }
    return count;
}

/* The key of an entry of a map, where it can be read; else empty. */
static struct slice key_of(const struct wire_path *path)
{
    struct reader reader = reader_from(path->value);
    struct slice key = { 0 };

    if (path->field->type != PROTOBUF_C_TYPE_MESSAGE)
        return key;
    const ProtobufCMessageDescriptor *type = path->field->descriptor;
    const char *name = json_shape_key(type->name);
    const ProtobufCFieldDescriptor *field =
        name != NULL ? protobuf_c_message_descriptor_get_field_by_name(type, name) : NULL;
    while (field != NULL && reader_left(&reader) > 0 && !reader.bad) {
        uint64_t tag = read_varint(&reader);
        struct slice value = read_value(&reader, tag & 7);
        if (tag >> 3 == field->id && (tag & 7) == WIRE_BYTES && !reader.bad)
            key = value; /* The last one counts. */
    }
    bool good = key.size > 0 && utf8_valid(key) && memchr(key.data, 0, key.size) == NULL;
    return good ? key : (struct slice){ 0 };
}

static size_t path_print(const struct wire_path *path, char *text, size_t room)
{
    char key[FIELD_KEY_BYTES] = "";
    size_t used = 0;

    if (path->up != NULL)
        used = path_print(path->up, text, room);
    if (path->field == NULL || used >= room)
        return used;
    if (path->field->label == PROTOBUF_C_LABEL_REPEATED)
        field_key_print(key_of(path), place_of(path), key);
    used += (size_t)snprintf(text + used, room - used, "%s%s%s", used > 0 ? "." : "",
                             path->field->name, key);
    return used < room ? used : room;
}

static err fail(struct codec_error *error, const struct wire_path *path, const char *message,
                const char *limit)
{
    *error = (struct codec_error){ 0 };
    if (path != NULL)
        path_print(path, error->field, sizeof error->field);
    snprintf(error->message, sizeof error->message, "%s", message);
    snprintf(error->limit, sizeof error->limit, "%s", limit);
    return ERR_INVALID;
}

static err fail_nul(struct codec_error *error, const struct wire_path *path)
{
    (void)fail(error, path, CODEC_NUL_MESSAGE, CODEC_NUL_LIMIT);
    snprintf(error->value, sizeof error->value, CODEC_NUL_VALUE);
    return ERR_INVALID;
}

static err fail_large(struct codec_error *error, const char *message, size_t limit)
{
    (void)fail(error, NULL, message, "");
    snprintf(error->limit, sizeof error->limit, "%zu", limit);
    return ERR_TOO_LARGE;
}

static bool wire_type_fits(const ProtobufCFieldDescriptor *field, unsigned wire_type)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return wire_type == WIRE_BYTES;
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return wire_type == WIRE_32 ||
               (wire_type == WIRE_BYTES && field->label == PROTOBUF_C_LABEL_REPEATED);
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return wire_type == WIRE_64 ||
               (wire_type == WIRE_BYTES && field->label == PROTOBUF_C_LABEL_REPEATED);
    default:
        return wire_type == WIRE_VARINT ||
               (wire_type == WIRE_BYTES && field->label == PROTOBUF_C_LABEL_REPEATED);
    }
}

static err walk(struct wire *wire, const ProtobufCMessageDescriptor *type, struct slice bytes,
                const struct wire_path *path);

static err walk_bytes(struct wire *wire, const ProtobufCFieldDescriptor *field, struct slice bytes,
                      const struct wire_path *path)
{
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        if (!utf8_valid(bytes))
            return fail(wire->error, path, "a string that is not UTF-8", "UTF-8");
        if (bytes.size > 0 && memchr(bytes.data, 0, bytes.size) != NULL)
            return fail_nul(wire->error, path);
    }
    if (field->type != PROTOBUF_C_TYPE_MESSAGE)
        return ERR_OK;
    if (wire->depth >= CODEC_DEPTH_MAX) {
        (void)fail_large(wire->error, "nested too deeply", CODEC_DEPTH_MAX);
        return ERR_INVALID;
    }
    wire->depth++;
    err e = walk(wire, field->descriptor, bytes, path);
    wire->depth--;
    return e;
}

/* The wire bytes of one message against its descriptor, strings included. */
static err walk(struct wire *wire, const ProtobufCMessageDescriptor *type, struct slice bytes,
                const struct wire_path *path)
{
    struct reader reader = reader_from(bytes);

    while (reader_left(&reader) > 0) {
        size_t at = bytes.size - reader_left(&reader);
        uint64_t tag = read_varint(&reader);
        unsigned wire_type = tag & 7;
        if (reader.bad || tag >> 3 == 0 || tag >> 3 > 0x1FFFFFFF)
            return fail(wire->error, path, "not protobuf: a broken tag", type->name);
        struct slice value = read_value(&reader, wire_type);
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3));
        struct wire_path here = { path, field, bytes, at, value };
        if (reader.bad)
            return fail(wire->error, &here, "not protobuf: a value runs past the end", type->name);
        if (field == NULL)
            continue;
        if (!wire_type_fits(field, wire_type))
            return fail(wire->error, &here, "not protobuf: another type of value", type->name);
        err e = wire_type == WIRE_BYTES ? walk_bytes(wire, field, value, &here) : ERR_OK;
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

/* An arena with a limit: unpack fails instead of taking more. */
struct bounded {
    struct arena *arena;
    size_t left;
};

static void *bounded_alloc(void *context, size_t size)
{
    struct bounded *bounded = context;

    if (size > bounded->left) {
        bounded->left = 0;
        return NULL;
    }
    bounded->left -= size;
    return arena_alloc(bounded->arena, size);
}

static void bounded_free(void *context, void *pointer)
{
    (void)context;
    (void)pointer;
}

err proto_decode(const ProtobufCMessageDescriptor *type, struct slice bytes,
                 struct codec_scope *scope, ProtobufCMessage **ret_message)
{
    size_t size_max = scope->size_bytes_max > 0 ? scope->size_bytes_max : CODEC_SIZE_BYTES_MAX;
    size_t memory_max = scope->memory_bytes_max > 0
                            ? scope->memory_bytes_max
                            : MEMORY_AT_LEAST + MEMORY_PER_BYTE * bytes.size;
    struct bounded bounded = { scope->arena, memory_max };
    ProtobufCAllocator allocator = { bounded_alloc, bounded_free, &bounded };
    struct wire wire = { .error = &scope->error, .depth = 1 };
    struct wire_path root = { 0 };

    if (bytes.size > size_max)
        return fail_large(&scope->error, "the message is too long", size_max);
    err e = walk(&wire, type, bytes, &root);
    if (e != ERR_OK)
        return e;
    ProtobufCMessage *message = protobuf_c_message_unpack(type, &allocator, bytes.size, bytes.data);
    if (message == NULL && bounded.left == 0)
        return fail_large(&scope->error, "the message needs too much memory", memory_max);
    if (message == NULL)
        return fail(&scope->error, NULL, "not protobuf", type->name);
    *ret_message = message;
    return ERR_OK;
}

void proto_encode(const ProtobufCMessage *message, struct buf *out)
{
    size_t size = protobuf_c_message_get_packed_size(message);

    if (size > 0)
        out->size += protobuf_c_message_pack(message, buf_reserve(out, size));
}
