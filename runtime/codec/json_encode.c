#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/base64.h"
#include "runtime/codec/json_document.h"
#include "runtime/codec/json_scan.h"
#include "runtime/base/utf8.h"

#define EXACT_MAX (1ull << 53) /* Every client reads a number up to this as it was written. */

struct json_out {
    struct json_codec *codec;
    struct buf *buf;
    enum json_form form;
};

static void put(struct buf *out, const void *bytes, size_t size)
{
    uint8_t *at =
        out->capacity - out->size >= size ? out->data + out->size : buf_reserve(out, size);
    memcpy(at, bytes, size);
    out->size += size;
}

static void put_byte(struct buf *out, char byte)
{
    if (out->size == out->capacity)
        (void)buf_reserve(out, 1);
    out->data[out->size++] = (uint8_t)byte;
}

struct natural {
    uint64_t magnitude;
    bool negative;
    bool quoted;
};

static void put_natural(struct buf *out, struct natural value)
{
    char text[24];
    char *at = text + sizeof text;
    uint64_t left = value.magnitude;

    if (value.quoted)
        *--at = '"';
    do {
        *--at = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (value.negative)
        *--at = '-';
    if (value.quoted)
        *--at = '"';
    put(out, at, (size_t)(text + sizeof text - at));
}

static inline void put_signed(struct buf *out, int64_t value)
{
    put_natural(out, (struct natural){ value < 0 ? 0 - (uint64_t)value : (uint64_t)value, value < 0,
                                       false });
}

static void put_escape(struct buf *out, uint8_t c)
{
    switch (c) {
    case '"':
        put(out, "\\\"", 2);
        return;
    case '\\':
        put(out, "\\\\", 2);
        return;
    case '\n':
        put(out, "\\n", 2);
        return;
    case '\r':
        put(out, "\\r", 2);
        return;
    case '\t':
        put(out, "\\t", 2);
        return;
    case '\b':
        put(out, "\\b", 2);
        return;
    case '\f':
        put(out, "\\f", 2);
        return;
    default:
        buf_printf(out, "\\u%04x", c);
    }
}

static void put_string(struct buf *out, const char *string)
{
    struct slice left = slice_from_text(string != NULL ? string : "");

    put_byte(out, '"');
    while (left.size > 0) {
        size_t run = (size_t)(json_skip_plain(left.data, left.data + left.size) - left.data);
        put(out, left.data, run);
        if (run == left.size)
            break;
        left = (struct slice){ left.data + run, left.size - run };
        size_t size = utf8_char_size(left);
        if (size > 1)
            put(out, left.data, size);
        else if (size == 1)
            put_escape(out, left.data[0]);
        else
            put(out, "\xEF\xBF\xBD", 3);
        size = size > 0 ? size : 1;
        left = (struct slice){ left.data + size, left.size - size };
    }
    put_byte(out, '"');
}

/* The shortest of `digits_min` to 17 digits that reads back the same. */
static void put_floating(struct buf *out, double value, bool is_float)
{
    char text[40];

    if (isnan(value) || isinf(value)) {
        const char *name = isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
        put(out, name, strlen(name));
        return;
    }
    for (int digits = is_float ? 6 : 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        double back = strtod(text, NULL);
        if (is_float ? (float)back >= (float)value && (float)back <= (float)value
                     : back >= value && back <= value)
            break;
    }
    put(out, text, strlen(text));
}

static void put_enum(const struct json_out *out, const struct json_field *field, int32_t number)
{
    const ProtobufCEnumValue *value =
        protobuf_c_enum_descriptor_get_value(field->descriptor->descriptor, number);
    char short_name[JSON_ENUM_NAME_BYTES];

    if (value == NULL) {
        put_signed(out->buf, number);
        return;
    }
    const char *name = value->name;
    if (out->form == JSON_PLAIN) {
        json_enum_short_name(field, name, short_name);
        name = short_name;
    }
    put_byte(out->buf, '"');
    put(out->buf, name, strlen(name));
    put_byte(out->buf, '"');
}

/* 64 bits: plain JSON has a number where every client reads it exactly. */
static inline void put_wide(const struct json_out *out, uint64_t magnitude, bool negative)
{
    put_natural(out->buf, (struct natural){ magnitude, negative,
                                            out->form == JSON_CANONICAL || magnitude > EXACT_MAX });
}

/* Whether the text, inline, would be read back as it is: strings are taken for the text itself,
 * null for nothing, and [] for {}. */
static bool reads_back(struct slice text)
{
    if (!json_document_is_whole(text) || *text.data == '"' || *text.data == 'n')
        return false;
    for (size_t i = 1; *text.data == '[' && i < text.size; i++) {
        if (strchr(" \t\r\n", text.data[i]) == NULL)
            return text.data[i] != ']';
    }
    return true;
}

static void put_document(const struct json_out *out, const char *text)
{
    struct slice document = slice_from_text(text != NULL ? text : "");

    if (reads_back(document))
        put(out->buf, document.data, document.size);
    else
        put_string(out->buf, text);
}

static void put_message(const struct json_out *out, struct json_type *type,
                        const ProtobufCMessage *message);

static inline void put_signed_wide(const struct json_out *out, int64_t value)
{
    put_wide(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, value < 0);
}

static void put_value(const struct json_out *to, struct json_field *field, const void *slot)
{
    struct buf *out = to->buf;

    switch (field->descriptor->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        put_signed(out, *(const int32_t *)slot);
        return;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        put_signed_wide(to, *(const int64_t *)slot);
        return;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        put_natural(out, (struct natural){ *(const uint32_t *)slot, false, false });
        return;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        put_wide(to, *(const uint64_t *)slot, false);
        return;
    case PROTOBUF_C_TYPE_FLOAT:
        put_floating(out, (double)*(const float *)slot, true);
        return;
    case PROTOBUF_C_TYPE_DOUBLE:
        put_floating(out, *(const double *)slot, false);
        return;
    case PROTOBUF_C_TYPE_BOOL:
        if (*(const protobuf_c_boolean *)slot)
            put(out, "true", 4);
        else
            put(out, "false", 5);
        return;
    case PROTOBUF_C_TYPE_ENUM:
        put_enum(to, field, *(const int32_t *)slot);
        return;
    case PROTOBUF_C_TYPE_STRING:
        if (to->form == JSON_PLAIN && field->shape == JSON_SHAPE_DOCUMENT)
            put_document(to, *(char *const *)slot);
        else
            put_string(out, *(char *const *)slot);
        return;
    case PROTOBUF_C_TYPE_BYTES: {
        const ProtobufCBinaryData *bytes = slot;
        put_byte(out, '"');
        base64_encode((struct slice){ bytes->data, bytes->len }, true, out);
        put_byte(out, '"');
        return;
    }
    case PROTOBUF_C_TYPE_MESSAGE:
        put_message(to, json_type_of_field(to->codec, field),
                    *(const ProtobufCMessage *const *)slot);
        return;
    }
}

static void put_map(const struct json_out *out, struct json_type *type,
                    ProtobufCMessage *const *list, size_t count);

static void put_repeated(const struct json_out *to, struct json_field *field,
                         const ProtobufCMessage *message)
{
    struct buf *out = to->buf;
    const char *base = (const char *)message;
    size_t count = *(const size_t *)(const void *)(base + field->descriptor->quantifier_offset);
    const char *data = *(const char *const *)(const void *)(base + field->descriptor->offset);
    size_t size = json_field_size(field->descriptor);

    if (to->form == JSON_PLAIN && field->descriptor->type == PROTOBUF_C_TYPE_MESSAGE) {
        struct json_type *type = json_type_of_field(to->codec, field);
        ProtobufCMessage *const *list = (ProtobufCMessage *const *)(const void *)data;
        if (type->key != NULL && json_type_find_twin(type, list, count) == count) {
            put_map(to, type, list, count);
            return;
        }
    }
    put_byte(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            put_byte(out, ',');
        put_value(to, field, data + i * size);
    }
    put_byte(out, ']');
}

/* proto2: a pointer is there when it is not NULL and not the default's own. */
static inline bool is_pointer_set(const ProtobufCFieldDescriptor *field, const void *slot)
{
    const char *pointer = *(char *const *)slot;

    if (pointer == NULL || field->type == PROTOBUF_C_TYPE_MESSAGE)
        return pointer != NULL;
    return field->label == PROTOBUF_C_LABEL_NONE ? *pointer != 0 : pointer != field->default_value;
}

/* Proto3: a field without presence is there when it differs from its zero. */
static inline bool is_set(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message)
{
    const char *base = (const char *)message;
    const void *slot = base + field->offset;
    const protobuf_c_boolean *presence = json_field_presence(field, message);

    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return *(const size_t *)(const void *)(base + field->quantifier_offset) > 0;
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return *(const uint32_t *)(const void *)(base + field->quantifier_offset) == field->id;
    if (field->label == PROTOBUF_C_LABEL_REQUIRED)
        return field->type != PROTOBUF_C_TYPE_MESSAGE || is_pointer_set(field, slot);
    if (presence != NULL)
        return *presence != 0;
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return is_pointer_set(field, slot);
    case PROTOBUF_C_TYPE_BYTES:
        return ((const ProtobufCBinaryData *)slot)->len > 0;
    default: {
        static const char zeros[8] = { 0 };
        return memcmp(slot, zeros, json_field_size(field)) != 0;
    }
    }
}

/* The fields that are set, but for those of `without`: a bit each, by place. */
static void put_members(const struct json_out *out, struct json_type *type,
                        const ProtobufCMessage *message, uint64_t without)
{
    struct buf *buf = out->buf;
    size_t skip = 1; /* The comma in front of the first. */

    for (unsigned i = 0; i < type->descriptor->n_fields; i++) {
        struct json_field *field = &type->fields[i];
        const ProtobufCFieldDescriptor *descriptor = field->descriptor;
        if (!is_set(descriptor, message) || (without & 1ull << i) != 0)
            continue;
        put(buf, field->prefix.data + skip, field->prefix.size - skip);
        skip = 0;
        if (descriptor->label == PROTOBUF_C_LABEL_REPEATED)
            put_repeated(out, field, message);
        else
            put_value(out, field, (const char *)message + descriptor->offset);
    }
}

/* ---- plain JSON ---- */

static uint64_t place_bit(const struct json_field *field)
{
    return 1ull << field->place;
}

/* What stands under the key: the value, where nothing else is set, or an object. */
static void put_entry(const struct json_out *out, struct json_type *type,
                      const ProtobufCMessage *message)
{
    struct buf *buf = out->buf;
    size_t from = buf->size;

    put_byte(buf, '{');
    if (type->value != NULL) {
        put_members(out, type, message, place_bit(type->key) | place_bit(type->value));
        bool alone = buf->size == from + 1;
        buf->size = alone ? from : from + 1;
        if (alone) {
            put_value(out, type->value, (const char *)message + type->value->descriptor->offset);
            return;
        }
    }
    put_members(out, type, message, place_bit(type->key));
    put_byte(buf, '}');
}

static void put_map(const struct json_out *out, struct json_type *type,
                    ProtobufCMessage *const *list, size_t count)
{
    put_byte(out->buf, '{');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            put_byte(out->buf, ',');
        put_string(out->buf, json_field_text(type->key, list[i]));
        put_byte(out->buf, ':');
        put_entry(out, type, list[i]);
    }
    put_byte(out->buf, '}');
}

/* {"path":"/xp","increment":40}. False: the step is none that reads back so, and nothing was put.
 */
static bool put_step(const struct json_out *out, struct json_type *type,
                     const ProtobufCMessage *message)
{
    const char *base = (const char *)message;
    int32_t kind = *(const int32_t *)(const void *)(base + type->verb->descriptor->offset);
    struct slice operand = slice_from_text(json_field_text(type->operand, message));
    const ProtobufCEnumValue *value =
        protobuf_c_enum_descriptor_get_value(type->verb->descriptor->descriptor, kind);
    bool bare = kind == JSON_VERB_BARE;
    char name[JSON_ENUM_NAME_BYTES];

    if (value == NULL || kind == 0 || (bare ? operand.size > 0 : !json_document_is_whole(operand)))
        return false;
    put_byte(out->buf, '{');
    size_t from = out->buf->size;
    put_members(out, type, message, place_bit(type->verb) | place_bit(type->operand));
    if (out->buf->size > from)
        put_byte(out->buf, ',');
    json_enum_short_name(type->verb, value->name, name);
    put_string(out->buf, name);
    put_byte(out->buf, ':');
    put(out->buf, bare ? "true" : (const char *)operand.data, bare ? 4 : operand.size);
    put_byte(out->buf, '}');
    return true;
}

static void put_message(const struct json_out *out, struct json_type *type,
                        const ProtobufCMessage *message)
{
    if (out->form == JSON_PLAIN && type->list != NULL) {
        put_repeated(out, type->list, message);
        return;
    }
    if (out->form == JSON_PLAIN && type->verb != NULL && put_step(out, type, message))
        return;
    put_byte(out->buf, '{');
    put_members(out, type, message, 0);
    put_byte(out->buf, '}');
}

void json_encode(struct json_codec *codec, enum json_form form, const ProtobufCMessage *message,
                 struct buf *out)
{
    const struct json_out to = { codec, out, form };

    CHECK(message->descriptor != NULL);
    put_message(&to, json_type_get(codec, message->descriptor), message);
}
