#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/nearest.h"
#include "runtime/base/base64.h"
#include "runtime/codec/json_scan.h"

#define NUMBER_TEXT_MAX   64u /* Longest floating-point number taken. */
#define ELEMENTS_AT_FIRST 4u
#define MEMORY_PER_BYTE   16u
#define MEMORY_AT_LEAST   (64u << 10)

static err decode_message(struct json_in *in, struct json_type *type, ProtobufCMessage *message);

static void *member(ProtobufCMessage *message, size_t offset)
{
    return (char *)message + offset;
}

/* A string or a number; both hold a number's text. */
static err scan_number_text(struct json_in *in, struct slice *ret_text)
{
    if (json_peek(in) == '"')
        return json_scan_string(in, ret_text);
    return json_scan_number(in, ret_text);
}

static err decode_integer(struct json_in *in, struct json_integer *ret_integer)
{
    const uint8_t *from = in->at;
    struct slice text;
    err e = scan_number_text(in, &text);

    if (e != ERR_OK)
        return e;
    switch (json_parse_integer(text, ret_integer)) {
    case JSON_INTEGER_OK:
        return ERR_OK;
    case JSON_INTEGER_SYNTAX:
        return json_fail(in, "not a number", "an integer", from);
    case JSON_INTEGER_FRACTION:
        return json_fail(in, "not a whole number", "an integer", from);
    case JSON_INTEGER_RANGE:
        break;
    }
    return json_fail(in, "a number out of range", "64 bits", from);
}

static err decode_signed(struct json_in *in, int64_t min, int64_t max, int64_t *ret_value)
{
    const uint8_t *from = in->at;
    struct json_integer integer;
    err e = decode_integer(in, &integer);

    if (e != ERR_OK)
        return e;
    uint64_t magnitude_max = integer.negative ? (uint64_t)max + 1 : (uint64_t)max;
    if (integer.magnitude > magnitude_max)
        return json_fail(in, "a number out of range",
                         min == INT32_MIN ? "-2147483648 to 2147483647"
                                          : "-9223372036854775808 to 9223372036854775807",
                         from);
    *ret_value = integer.negative ? (int64_t)(0 - integer.magnitude) : (int64_t)integer.magnitude;
    return ERR_OK;
}

static err decode_unsigned(struct json_in *in, uint64_t max, uint64_t *ret_value)
{
    const uint8_t *from = in->at;
    struct json_integer integer;
    err e = decode_integer(in, &integer);

    if (e != ERR_OK)
        return e;
    if (integer.magnitude > max || (integer.negative && integer.magnitude != 0))
        return json_fail(in, "a number out of range",
                         max == UINT32_MAX ? "0 to 4294967295" : "0 to 18446744073709551615", from);
    *ret_value = integer.magnitude;
    return ERR_OK;
}

static err decode_floating(struct json_in *in, double max, double *ret_value)
{
    const uint8_t *from = in->at;
    char number[NUMBER_TEXT_MAX + 1];
    bool quoted = json_peek(in) == '"';
    struct slice text;
    struct json_integer unused;
    err e = scan_number_text(in, &text);

    if (e != ERR_OK)
        return e;
    if (quoted && slice_equal(text, SLICE_LITERAL("NaN")))
        return *ret_value = (double)NAN, ERR_OK;
    if (quoted && slice_equal(text, SLICE_LITERAL("Infinity")))
        return *ret_value = (double)INFINITY, ERR_OK;
    if (quoted && slice_equal(text, SLICE_LITERAL("-Infinity")))
        return *ret_value = -(double)INFINITY, ERR_OK;
    if (text.size > NUMBER_TEXT_MAX)
        return json_fail(in, "a number with too many digits", "64 characters", from);
    if (json_parse_integer(text, &unused) == JSON_INTEGER_SYNTAX)
        return json_fail(in, "not a number", "a number", from);
    memcpy(number, text.data, text.size);
    number[text.size] = 0;
    *ret_value = strtod(number, NULL);
    if (*ret_value > max || *ret_value < -max)
        return json_fail(in, "a number out of range", max < 1e39 ? "a float" : "a double", from);
    return ERR_OK;
}

static err decode_bool(struct json_in *in, protobuf_c_boolean *ret_value)
{
    if (json_take_word(in, "true"))
        return *ret_value = 1, ERR_OK;
    if (json_take_word(in, "false"))
        return *ret_value = 0, ERR_OK;
    return json_fail(in, "not a boolean", "true or false", in->at);
}

/* Names the nearest of the names that there are, where one is near. */
static err fail_name(struct json_in *in, const char *what, const char *limit, const uint8_t *from,
                     const struct nearest *nearest)
{
    char message[sizeof in->scope->error.message], hint[NEAREST_HINT_BYTES];

    snprintf(message, sizeof message, "%s%s", what, nearest_hint(nearest->name, hint));
    return json_fail(in, message, limit, from);
}

static err fail_enum(struct json_in *in, const ProtobufCEnumDescriptor *type, struct slice name,
                     const uint8_t *from)
{
    struct nearest nearest;

    nearest_init(&nearest, name);
    for (unsigned i = 0; i < type->n_values; i++)
        nearest_offer_text(&nearest, type->values[i].name);
    return fail_name(in, "an unknown enum name", type->name, from, &nearest);
}

static err decode_enum(struct json_in *in, const ProtobufCEnumDescriptor *type, int32_t *ret_value)
{
    const uint8_t *from = in->at;
    struct slice name;
    char text[80];

    if (json_peek(in) != '"') {
        int64_t number;
        err e = decode_signed(in, INT32_MIN, INT32_MAX, &number);
        if (e == ERR_OK)
            *ret_value = (int32_t)number;
        return e;
    }
    err e = json_scan_string(in, &name);
    if (e != ERR_OK)
        return e;
    if (name.size < sizeof text) {
        memcpy(text, name.data, name.size);
        text[name.size] = 0;
        const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value_by_name(type, text);
        if (value != NULL)
            return *ret_value = value->value, ERR_OK;
    }
    return fail_enum(in, type, name, from);
}

static err decode_string(struct json_in *in, char **ret_text)
{
    struct slice text;
    err e;

    if (json_peek(in) != '"')
        return json_fail(in, "not a string", "a string", in->at);
    e = json_scan_string(in, &text);
    if (e != ERR_OK)
        return e;
    char *copy = json_alloc(in, text.size + 1);
    if (copy == NULL)
        return ERR_TOO_LARGE;
    memcpy(copy, text.data, text.size);
    copy[text.size] = 0;
    *ret_text = copy;
    return ERR_OK;
}

static err decode_bytes(struct json_in *in, ProtobufCBinaryData *ret_bytes)
{
    const uint8_t *from = in->at;
    struct slice text;
    err e;

    if (json_peek(in) != '"')
        return json_fail(in, "not a string", "base64", in->at);
    e = json_scan_string(in, &text);
    if (e != ERR_OK)
        return e;
    uint8_t *bytes = json_alloc(in, base64_size_max(text.size) + 1);
    if (bytes == NULL)
        return ERR_TOO_LARGE;
    if (!base64_decode(text, bytes, &ret_bytes->len))
        return json_fail(in, "not base64", "base64", from);
    ret_bytes->data = bytes;
    return ERR_OK;
}

static err decode_submessage(struct json_in *in, struct json_field *field,
                             ProtobufCMessage **ret_message)
{
    struct json_type *type = json_type_of_field(in->codec, field);
    ProtobufCMessage *message;
    err e;

    if (in->depth >= CODEC_DEPTH_MAX) {
        (void)json_fail_large(in, "nested too deeply", CODEC_DEPTH_MAX);
        return ERR_INVALID;
    }
    message = json_alloc(in, type->descriptor->sizeof_message);
    if (message == NULL)
        return ERR_TOO_LARGE;
    protobuf_c_message_init(type->descriptor, message);
    in->depth++;
    e = decode_message(in, type, message);
    in->depth--;
    if (e == ERR_OK)
        *ret_message = message;
    return e;
}

/* One value of the field's type into `slot`, of json_field_size bytes. */
static err decode_value(struct json_in *in, struct json_field *field, void *slot)
{
    int64_t number = 0;
    uint64_t natural = 0;
    double real = 0;
    err e;

    switch (field->descriptor->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        e = decode_signed(in, INT32_MIN, INT32_MAX, &number);
        return *(int32_t *)slot = (int32_t)number, e;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return decode_signed(in, INT64_MIN, INT64_MAX, slot);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        e = decode_unsigned(in, UINT32_MAX, &natural);
        return *(uint32_t *)slot = (uint32_t)natural, e;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return decode_unsigned(in, UINT64_MAX, slot);
    case PROTOBUF_C_TYPE_FLOAT:
        e = decode_floating(in, 3.4028235677973366e38, &real);
        return *(float *)slot = (float)real, e;
    case PROTOBUF_C_TYPE_DOUBLE:
        return decode_floating(in, 1.7976931348623157e308, slot);
    case PROTOBUF_C_TYPE_BOOL:
        return decode_bool(in, slot);
    case PROTOBUF_C_TYPE_ENUM:
        return decode_enum(in, field->descriptor->descriptor, slot);
    case PROTOBUF_C_TYPE_STRING:
        return decode_string(in, slot);
    case PROTOBUF_C_TYPE_BYTES:
        return decode_bytes(in, slot);
    case PROTOBUF_C_TYPE_MESSAGE:
        return decode_submessage(in, field, slot);
    }
    return json_fail(in, "a type this codec does not know", "", NULL);
}

/* A growing array in the arena; old ones stay there, at most as much again. */
struct elements {
    char *data;
    size_t size; /* Of one. */
    size_t count;
    size_t capacity;
};

static void *elements_add(struct json_in *in, struct elements *list)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity > 0 ? 2 * list->capacity : ELEMENTS_AT_FIRST;
        char *data = json_alloc(in, capacity * list->size);
        if (data == NULL)
            return NULL;
        if (list->count > 0)
            memcpy(data, list->data, list->count * list->size);
        list->data = data;
        list->capacity = capacity;
    }
    return list->data + list->size * list->count++;
}

/* Behind the first '[': values with commas, and the ']'. */
static err decode_elements(struct json_in *in, struct json_field *field, struct elements *list)
{
    struct json_path path = { .up = in->path, .is_element = true };
    err e = ERR_OK;

    in->path = &path;
    for (;;) {
        void *slot = elements_add(in, list);
        if (slot == NULL)
            return ERR_TOO_LARGE;
        path.index = list->count - 1;
        json_skip_space(in);
        e = decode_value(in, field, slot);
        if (e != ERR_OK)
            return e;
        json_skip_space(in);
        if (json_peek(in) != ',')
            break;
        in->at++;
    }
    in->path = path.up;
    if (json_peek(in) != ']')
        return json_fail(in, "expected , or ]", ", or ]", in->at);
    in->at++;
    return ERR_OK;
}

static err decode_repeated(struct json_in *in, struct json_field *field, ProtobufCMessage *message)
{
    struct elements list = { .size = json_field_size(field->descriptor) };
    err e;

    if (json_peek(in) != '[')
        return json_fail(in, "not an array", "an array", in->at);
    in->at++;
    json_skip_space(in);
    if (json_peek(in) == ']') {
        in->at++;
        return ERR_OK;
    }
    e = decode_elements(in, field, &list);
    if (e != ERR_OK)
        return e;
    *(void **)member(message, field->descriptor->offset) = list.data;
    *(size_t *)member(message, field->descriptor->quantifier_offset) = list.count;
    return ERR_OK;
}

static err decode_field(struct json_in *in, struct json_field *field, ProtobufCMessage *message)
{
    const ProtobufCFieldDescriptor *descriptor = field->descriptor;
    protobuf_c_boolean *presence = json_field_presence(descriptor, message);

    if (json_take_word(in, "null"))
        return descriptor->label == PROTOBUF_C_LABEL_REQUIRED
                   ? json_fail(in, "a required field is null", "a value", NULL)
                   : ERR_OK;
    if (descriptor->label == PROTOBUF_C_LABEL_REPEATED)
        return decode_repeated(in, field, message);
    if (descriptor->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        uint32_t *which = member(message, descriptor->quantifier_offset);
        if (*which != 0)
            return json_fail(in, "two fields of which only one may be set", "one of them", in->at);
        *which = descriptor->id;
    }
    if (presence != NULL)
        *presence = 1;
    return decode_value(in, field, member(message, descriptor->offset));
}

static err fail_field(struct json_in *in, const struct json_type *type, struct slice name)
{
    struct nearest nearest;

    nearest_init(&nearest, name);
    for (unsigned i = 0; i < type->descriptor->n_fields; i++) {
        nearest_offer(&nearest, type->fields[i].name);
        nearest_offer_text(&nearest, type->fields[i].descriptor->name);
    }
    return fail_name(in, "no such field", type->descriptor->name, NULL, &nearest);
}

/* "name": value */
static err decode_pair(struct json_in *in, struct json_type *type, ProtobufCMessage *message,
                       uint64_t *seen)
{
    struct json_path path = { .up = in->path };
    struct json_field *field;
    err e;

    if (json_peek(in) != '"')
        return json_fail(in, "expected a field name", "\"", in->at);
    e = json_scan_string(in, &path.name);
    if (e != ERR_OK)
        return e;
    in->path = &path;
    field = json_type_find_field(type, path.name);
    if (field == NULL)
        return fail_field(in, type, path.name);
    if (*seen & 1ull << field->place)
        return json_fail(in, "the field is there twice", "once", NULL);
    *seen |= 1ull << field->place;
    json_skip_space(in);
    if (json_peek(in) != ':')
        return json_fail(in, "expected : behind a field name", ":", in->at);
    in->at++;
    json_skip_space(in);
    e = decode_field(in, field, message);
    if (e == ERR_OK)
        in->path = path.up;
    return e;
}

/* Luau encodes an empty table as []. */
static err decode_empty_array(struct json_in *in)
{
    const uint8_t *from = in->at++;

    json_skip_space(in);
    if (json_peek(in) != ']')
        return json_fail(in, "an array where a message belongs", "an object", from);
    in->at++;
    return ERR_OK;
}

/* ERR_OK when every field that proto2 requires has been seen. */
static err check_required(struct json_in *in, const struct json_type *type, uint64_t seen)
{
    struct json_path path = { .up = in->path };
    uint64_t missing = type->required & ~seen;
    unsigned place = 0;

    if (missing == 0)
        return ERR_OK;
    while ((missing & 1ull << place) == 0)
        place++;
    path.name = type->fields[place].name;
    in->path = &path;
    return json_fail(in, "a required field is missing", type->descriptor->name, NULL);
}

static err decode_members(struct json_in *in, struct json_type *type, ProtobufCMessage *message,
                          uint64_t *seen)
{
    if (json_peek(in) == '[')
        return decode_empty_array(in);
    if (json_peek(in) != '{')
        return json_fail(in, "not an object", "an object", in->at);
    in->at++;
    json_skip_space(in);
    if (json_peek(in) == '}') {
        in->at++;
        return ERR_OK;
    }
    for (;;) {
        err e = decode_pair(in, type, message, seen);
        if (e != ERR_OK)
            return e;
        json_skip_space(in);
        uint8_t c = json_peek(in);
        if (c != ',' && c != '}')
            return json_fail(in, "expected , or }", ", or }", in->at);
        in->at++;
        if (c == '}')
            return ERR_OK;
        json_skip_space(in);
    }
}

static err decode_message(struct json_in *in, struct json_type *type, ProtobufCMessage *message)
{
    uint64_t seen = 0;
    err e = decode_members(in, type, message, &seen);

    return e == ERR_OK ? check_required(in, type, seen) : e;
}

err json_decode(struct json_codec *codec, const ProtobufCMessageDescriptor *descriptor,
                struct slice json, struct codec_scope *scope, ProtobufCMessage **ret_message)
{
    size_t size_max = scope->size_bytes_max > 0 ? scope->size_bytes_max : CODEC_SIZE_BYTES_MAX;
    size_t memory_max = scope->memory_bytes_max > 0 ? scope->memory_bytes_max
                                                    : MEMORY_AT_LEAST + MEMORY_PER_BYTE * json.size;
    struct reader reader = reader_from(json); /* Never NULL. */
    struct json_in in = { .at = reader.at,
                          .end = reader.end,
                          .codec = codec,
                          .scope = scope,
                          .memory_max = memory_max,
                          .memory_left = memory_max,
                          .depth = 1 };
    struct json_type *type = json_type_get(codec, descriptor);
    ProtobufCMessage *message;
    err e = ERR_OK;

    if (json.size > size_max)
        return json_fail_large(&in, "the message is too long", size_max);
    message = json_alloc(&in, descriptor->sizeof_message);
    if (message == NULL)
        return ERR_TOO_LARGE;
    protobuf_c_message_init(descriptor, message);
    if (json.size > 0) {
        json_skip_space(&in);
        e = decode_message(&in, type, message);
        json_skip_space(&in);
        if (e == ERR_OK && in.at != in.end)
            e = json_fail(&in, "more text behind the message", "the end", in.at);
    } else {
        e = check_required(&in, type, 0);
    }
    if (e == ERR_OK)
        *ret_message = message;
    return e;
}
