#include "runtime/codec/json_type.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

#define TYPE_SLOTS      (2 * JSON_CODEC_TYPES_MAX)
#define KEYS_PAIRED_MAX 16u /* So many keys are compared each with each. */

void json_codec_init(struct json_codec *codec)
{
    *codec = (struct json_codec){ .types = mem_zalloc(TYPE_SLOTS * sizeof(struct json_type *)) };
}

void json_codec_deinit(struct json_codec *codec)
{
    for (size_t i = 0; codec->types != NULL && i < TYPE_SLOTS; i++) {
        if (codec->types[i] == NULL)
            continue;
        arena_deinit(&codec->types[i]->arena);
        free(codec->types[i]);
    }
    free(codec->types);
    *codec = (struct json_codec){ 0 };
}

/* Names are short and differ in length, ends or middle. */
static size_t name_hash(struct slice name)
{
    size_t hash = name.size;

    if (name.size > 0)
        hash += name.data[0] * 31u + name.data[name.size - 1] * 7u + name.data[name.size / 2];
    return hash;
}

static void slot_add(struct json_type *type, struct slice name, struct json_field *field)
{
    size_t at = name_hash(name) & type->slot_mask;

    while (type->slots[at].field != NULL) {
        if (slice_equal(type->slots[at].name, name))
            return;
        at = (at + 1) & type->slot_mask;
    }
    type->slots[at] = (struct json_slot){ name, field };
}

struct json_field *json_type_find_field(const struct json_type *type, struct slice name)
{
    size_t at = name_hash(name) & type->slot_mask;

    while (type->slots[at].field != NULL) {
        if (slice_equal(type->slots[at].name, name))
            return type->slots[at].field;
        at = (at + 1) & type->slot_mask;
    }
    return NULL;
}

/* The proto3 JSON name: an underscore goes, the letter behind it becomes a capital. */
static struct slice camel_name(struct arena *arena, const char *name)
{
    char *camel = arena_alloc(arena, strlen(name) + 1);
    size_t size = 0;
    bool raise = false;

    for (; *name != 0; name++) {
        if (*name == '_') {
            raise = true;
            continue;
        }
        char c = *name;
        if (raise && c >= 'a' && c <= 'z')
            c = (char)(c - 'a' + 'A');
        raise = false;
        camel[size++] = c;
    }
    camel[size] = 0;
    return (struct slice){ (uint8_t *)camel, size };
}

static const struct {
    const char *message, *field;
    enum json_shape shape;
} shapes[] = {
#define SHAPE_ROW(message, field, shape) { message, field, JSON_SHAPE_##shape },
    JSON_SHAPES(SHAPE_ROW)
#undef SHAPE_ROW
};

static enum json_shape shape_of(const char *message, const char *field)
{
    for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
        if (strcmp(shapes[i].message, message) == 0 && strcmp(shapes[i].field, field) == 0)
            return shapes[i].shape;
    }
    return JSON_SHAPE_NONE;
}

const char *json_shape_key(const char *message)
{
    for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
        if (shapes[i].shape == JSON_SHAPE_KEY && strcmp(shapes[i].message, message) == 0)
            return shapes[i].field;
    }
    return NULL;
}

/* All names of an enum begin as the one that ends in UNSPECIFIED does (buf lint sees to it). */
static size_t enum_prefix_of(const ProtobufCFieldDescriptor *field)
{
    const ProtobufCEnumDescriptor *names = field->descriptor;
    static const char end[] = "_UNSPECIFIED";

    if (field->type != PROTOBUF_C_TYPE_ENUM || names->n_values == 0)
        return 0;
    size_t size = strlen(names->values[0].name);
    if (size < sizeof end || strcmp(names->values[0].name + size - (sizeof end - 1), end) != 0)
        return 0;
    return size - (sizeof end - 1) + 1;
}

static void shape_take(struct json_type *type, struct json_field *field)
{
    field->shape = shape_of(type->descriptor->name, field->descriptor->name);
    field->enum_prefix = enum_prefix_of(field->descriptor);
    switch (field->shape) {
    case JSON_SHAPE_KEY:
        type->key = field;
        return;
    case JSON_SHAPE_VALUE:
        type->value = field;
        return;
    case JSON_SHAPE_LIST:
        type->list = field;
        return;
    case JSON_SHAPE_VERB:
        type->verb = field;
        return;
    case JSON_SHAPE_OPERAND:
        type->operand = field;
        return;
    case JSON_SHAPE_NONE:
    case JSON_SHAPE_DOCUMENT:
        return;
    }
}

static struct json_type *type_new(const ProtobufCMessageDescriptor *descriptor)
{
    struct json_type *type = mem_zalloc(sizeof *type);
    size_t slots = 4;

    CHECK(descriptor->n_fields <= JSON_FIELDS_MAX);
    while (slots < descriptor->n_fields * 8u)
        slots *= 2;
    type->descriptor = descriptor;
    type->slot_mask = slots - 1;
    type->slots = arena_zalloc(&type->arena, slots * sizeof *type->slots);
    type->fields = arena_zalloc(&type->arena, (descriptor->n_fields + 1) * sizeof *type->fields);
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        struct json_field *field = &type->fields[i];
        const char *name = descriptor->fields[i].name;
        field->descriptor = &descriptor->fields[i];
        field->place = i;
        field->name = camel_name(&type->arena, name);
        field->prefix =
            slice_from_text(arena_printf(&type->arena, ",\"%s\":", (const char *)field->name.data));
        shape_take(type, field);
        slot_add(type, field->name, field);
        slot_add(type, slice_from_text(name), field);
        if (field->descriptor->label == PROTOBUF_C_LABEL_REQUIRED)
            type->required |= 1ull << i;
    }
    return type;
}

struct json_type *json_type_get(struct json_codec *codec,
                                const ProtobufCMessageDescriptor *descriptor)
{
    size_t at = ((uintptr_t)descriptor >> 4) % TYPE_SLOTS;

    while (codec->types[at] != NULL) {
        if (codec->types[at]->descriptor == descriptor)
            return codec->types[at];
        at = (at + 1) % TYPE_SLOTS;
    }
    CHECK(codec->type_count < JSON_CODEC_TYPES_MAX);
    codec->type_count++;
    codec->types[at] = type_new(descriptor);
    return codec->types[at];
}

struct json_type *json_type_of_field(struct json_codec *codec, struct json_field *field)
{
    if (field->message == NULL)
        field->message = json_type_get(codec, field->descriptor->descriptor);
    return field->message;
}

protobuf_c_boolean *json_field_presence(const ProtobufCFieldDescriptor *field,
                                        const ProtobufCMessage *message)
{
    if (field->label != PROTOBUF_C_LABEL_OPTIONAL || field->quantifier_offset == 0 ||
        (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0)
        return NULL;
    return (protobuf_c_boolean *)((uintptr_t)message + field->quantifier_offset);
}

const char *json_field_text(const struct json_field *field, const ProtobufCMessage *message)
{
    const char *text = *(char *const *)((uintptr_t)message + field->descriptor->offset);

    return text != NULL ? text : "";
}

struct placed_key {
    const char *key;
    size_t place;
};

static int compare_keys(const void *a, const void *b)
{
    const struct placed_key *x = a, *y = b;
    int order = strcmp(x->key, y->key);

    return order != 0 ? order : x->place < y->place ? -1 : x->place > y->place;
}

/* In n log n: a long list may be a stranger's. */
static size_t find_twin_sorted(const struct json_type *type, ProtobufCMessage *const *list,
                               size_t count)
{
    struct placed_key *keys = mem_zalloc(count * sizeof *keys);
    size_t twin = count;

    for (size_t i = 0; i < count; i++)
        keys[i] = (struct placed_key){ json_field_text(type->key, list[i]), i };
    qsort(keys, count, sizeof *keys, compare_keys);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(keys[i - 1].key, keys[i].key) == 0 && keys[i].place < twin)
            twin = keys[i].place;
    }
    free(keys);
    return twin;
}

size_t json_type_find_twin(const struct json_type *type, ProtobufCMessage *const *list,
                           size_t count)
{
    if (count > KEYS_PAIRED_MAX)
        return find_twin_sorted(type, list, count);
    for (size_t i = 1; i < count; i++) {
        const char *key = json_field_text(type->key, list[i]);
        for (size_t j = 0; j < i; j++) {
            if (strcmp(json_field_text(type->key, list[j]), key) == 0)
                return i;
        }
    }
    return count;
}

void json_enum_short_name(const struct json_field *field, const char *name,
                          char ret_short[JSON_ENUM_NAME_BYTES])
{
    size_t size = strlen(name);
    size_t from = field->enum_prefix < size ? field->enum_prefix : 0;

    ret_short[0] = 0;
    if (size - from >= JSON_ENUM_NAME_BYTES)
        return;
    for (size_t i = from; i <= size; i++) {
        char c = name[i];
        ret_short[i - from] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
}

const ProtobufCEnumValue *json_enum_find_short(const struct json_field *field, struct slice name)
{
    const ProtobufCEnumDescriptor *type = field->descriptor->descriptor;
    char short_name[JSON_ENUM_NAME_BYTES];

    for (unsigned i = 0; i < type->n_values; i++) {
        json_enum_short_name(field, type->values[i].name, short_name);
        if (slice_equal(slice_from_text(short_name), name))
            return &type->values[i];
    }
    return NULL;
}

size_t json_field_size(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_ENUM:
        return 4;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    }
    check_failed("a type of protobuf-c's enum", __FILE__, __LINE__);
}
