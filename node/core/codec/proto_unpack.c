#include "node/core/codec/proto_unpack.h"

#include <string.h>

#include "runtime/base/buf.h"
#include "runtime/base/check.h"

#define DEPTH_MAX 16u
#define GUESSES   4u

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5, WIRE_NONE = 8 };

/* A message on its way from bytes into a struct. */
struct unpack {
    struct arena *arena;
    const uint8_t *at, *end;
    const ProtobufCMessageDescriptor *type;
    uint8_t *message;
    unsigned place; /* Of the field told last: fields come by rising number, as a rule. */
    unsigned depth;
};

static bool take_varint(const uint8_t **at, const uint8_t *end, uint64_t *ret_value)
{
    const uint8_t *next = *at;
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 63 && next < end; shift += 7) {
        uint8_t byte = *next++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *at = next;
            *ret_value = value;
            return true;
        }
    }
    if (next == end || *next > 1) /* The tenth byte has one bit. */
        return false;
    *ret_value = value | (uint64_t)*next++ << 63;
    *at = next;
    return true;
}

static bool take_bytes(const uint8_t **at, const uint8_t *end, struct slice *ret_bytes)
{
    uint64_t size;

    if (!take_varint(at, end, &size) || size > (uint64_t)(end - *at))
        return false;
    *ret_bytes = (struct slice){ *at, (size_t)size };
    *at += size;
    return true;
}

static bool pass_over(const uint8_t **at, const uint8_t *end, unsigned wire)
{
    struct slice bytes;
    uint64_t value;
    size_t size = wire == WIRE_FIXED64 ? 8 : 4;

    if (wire == WIRE_VARINT)
        return take_varint(at, end, &value);
    if (wire == WIRE_BYTES)
        return take_bytes(at, end, &bytes);
    if ((wire != WIRE_FIXED64 && wire != WIRE_FIXED32) || (size_t)(end - *at) < size)
        return false;
    *at += size;
    return true;
}

static enum wire wire_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_BOOL:
    case PROTOBUF_C_TYPE_ENUM:
        return WIRE_VARINT;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return WIRE_BYTES;
    case PROTOBUF_C_TYPE_FIXED64:
        return WIRE_FIXED64;
    default: /* The protocol has no others. */
        return WIRE_NONE;
    }
}

static size_t size_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return sizeof(uint64_t);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return sizeof(uint32_t);
    }
}

static void put_number(ProtobufCType type, uint64_t value, void *member)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SINT32:
        *(int32_t *)member = (int32_t)((uint32_t)value >> 1 ^ (0u - ((uint32_t)value & 1)));
        break;
    case PROTOBUF_C_TYPE_SINT64:
        *(int64_t *)member = (int64_t)(value >> 1 ^ (0u - (value & 1)));
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        *(uint64_t *)member = value;
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)member = value != 0;
        break;
    default:
        *(uint32_t *)member = (uint32_t)value;
        break;
    }
}

/* Whatever it points to, as the struct says. */
static void put_pointer(void *member, const void *pointer)
{
    memcpy(member, &pointer, sizeof pointer);
}

static void *get_pointer(const void *member)
{
    void *pointer;

    memcpy(&pointer, member, sizeof pointer);
    return pointer;
}

static uint8_t *message_unpack(struct arena *arena, const ProtobufCMessageDescriptor *type,
                               struct slice bytes, unsigned depth);

static bool put_bytes(const struct unpack *u, const ProtobufCFieldDescriptor *field,
                      struct slice bytes, void *member)
{
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        uint8_t *message = message_unpack(u->arena, field->descriptor, bytes, u->depth + 1);
        put_pointer(member, message);
        return message != NULL;
    }
    struct slice copy = { 0 };
    if (field->type == PROTOBUF_C_TYPE_STRING || bytes.size > 0)
        copy = arena_copy(u->arena, bytes);
    ProtobufCBinaryData data = { bytes.size, (uint8_t *)(uintptr_t)copy.data };
    if (field->type == PROTOBUF_C_TYPE_STRING)
        put_pointer(member, data.data);
    else
        *(ProtobufCBinaryData *)member = data;
    return true;
}

/* One value, with a wire type that is the field's. */
static bool put_value(struct unpack *u, const ProtobufCFieldDescriptor *field, void *member)
{
    struct slice bytes;
    uint64_t value;

    if (field->type == PROTOBUF_C_TYPE_FIXED64) {
        if (u->end - u->at < (ptrdiff_t)sizeof value)
            return false;
        *(uint64_t *)member = load_u64(u->at);
        u->at += sizeof value;
        return true;
    }
    if (wire_of(field->type) == WIRE_BYTES)
        return take_bytes(&u->at, u->end, &bytes) && put_bytes(u, field, bytes, member);
    if (!take_varint(&u->at, u->end, &value))
        return false;
    put_number(field->type, value, member);
    return true;
}

/* Of a list, in what is left: this element, whose tag was read, and all behind it. */
static bool count_elements(const struct unpack *u, const ProtobufCFieldDescriptor *field,
                           size_t *ret_count)
{
    const uint8_t *at = u->at;
    uint64_t tag = (uint64_t)field->id << 3 | wire_of(field->type);
    uint64_t next = tag;

    *ret_count = 0;
    do {
        *ret_count += next == tag;
        if (!pass_over(&at, u->end, next & 7))
            return false;
    } while (at < u->end && take_varint(&at, u->end, &next));
    return at == u->end;
}

static bool put_element(struct unpack *u, const ProtobufCFieldDescriptor *field)
{
    size_t *count = (size_t *)(void *)(u->message + field->quantifier_offset);
    void *member = u->message + field->offset;
    uint8_t *list = get_pointer(member);
    size_t size = size_of(field->type);
    size_t all;

    if (list == NULL) {
        if (!count_elements(u, field, &all))
            return false;
        list = arena_alloc(u->arena, all * size);
        put_pointer(member, list);
    }
    return put_value(u, field, list + (*count)++ * size);
}

static bool put_packed(struct unpack *u, const ProtobufCFieldDescriptor *field)
{
    size_t *count = (size_t *)(void *)(u->message + field->quantifier_offset);
    void *member = u->message + field->offset;
    size_t size = size_of(field->type);
    struct slice bytes;
    uint64_t value;

    if (get_pointer(member) != NULL || !take_bytes(&u->at, u->end, &bytes) || bytes.size == 0)
        return false;
    const uint8_t *end = bytes.data + bytes.size;
    size_t all = 0;
    for (const uint8_t *at = bytes.data; at < end; at++)
        all += *at < 128;
    uint8_t *list = arena_alloc(u->arena, all * size);
    put_pointer(member, list);
    for (const uint8_t *at = bytes.data; at < end;) {
        if (!take_varint(&at, end, &value))
            return false;
        put_number(field->type, value, list + (*count)++ * size);
    }
    return true;
}

/* A message told twice would have to be merged, a oneof's first choice to be taken back. */
static bool put_single(struct unpack *u, const ProtobufCFieldDescriptor *field)
{
    void *member = u->message + field->offset;
    uint32_t told = 0;

    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        memcpy(&told, u->message + field->quantifier_offset, sizeof told);
        if (told != 0)
            return false;
        told = field->id;
    } else if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        if (get_pointer(member) != NULL)
            return false;
    }
    if (!put_value(u, field, member))
        return false;
    if (told == 0)
        told = 1; /* The field is there. */
    if (field->quantifier_offset != 0)
        memcpy(u->message + field->quantifier_offset, &told, sizeof told);
    return true;
}

/* NULL: the type has none of this number. */
static const ProtobufCFieldDescriptor *find_field(struct unpack *u, uint64_t number)
{
    const ProtobufCFieldDescriptor *fields = u->type->fields;

    for (unsigned i = u->place; i < u->type->n_fields && i < u->place + GUESSES; i++) {
        if (fields[i].id == number) {
            u->place = i;
            return &fields[i];
        }
    }
    if (number > UINT32_MAX)
        return NULL;
    const ProtobufCFieldDescriptor *found =
        protobuf_c_message_descriptor_get_field(u->type, (unsigned)number);
    if (found != NULL)
        u->place = (unsigned)(found - fields);
    return found;
}

static bool take_field(struct unpack *u)
{
    uint64_t tag;

    if (!take_varint(&u->at, u->end, &tag))
        return false;
    const ProtobufCFieldDescriptor *field = find_field(u, tag >> 3);
    if (field == NULL || field->label == PROTOBUF_C_LABEL_REQUIRED)
        return false;
    enum wire wire = wire_of(field->type);
    if (field->label == PROTOBUF_C_LABEL_REPEATED && wire == WIRE_VARINT)
        return (tag & 7) == WIRE_BYTES && put_packed(u, field);
    if ((tag & 7) != wire)
        return false;
    return field->label == PROTOBUF_C_LABEL_REPEATED ? put_element(u, field) : put_single(u, field);
}

static uint8_t *message_unpack(struct arena *arena, const ProtobufCMessageDescriptor *type,
                               struct slice bytes, unsigned depth)
{
    struct unpack u = { .arena = arena, .type = type, .depth = depth };

    if (depth > DEPTH_MAX)
        return NULL;
    u.message = arena_alloc(arena, type->sizeof_message);
    protobuf_c_message_init(type, u.message);
    if (bytes.size == 0)
        return u.message;
    u.at = bytes.data;
    u.end = bytes.data + bytes.size;
    while (u.at < u.end) {
        if (!take_field(&u))
            return NULL;
    }
    return u.message;
}

ProtobufCMessage *proto_unpack(struct arena *arena, const ProtobufCMessageDescriptor *type,
                               struct slice bytes)
{
    CHECK(arena != NULL && type != NULL);
    return (ProtobufCMessage *)(void *)message_unpack(arena, type, bytes, 0);
}
