#include <stdio.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/nearest.h"
#include "runtime/base/base64.h"
#include "runtime/codec/json_document.h"
#include "runtime/codec/json_number.h"
#include "runtime/codec/json_path.h"

#define ELEMENTS_AT_FIRST 4u
#define MEMORY_PER_BYTE   16u
#define MEMORY_AT_LEAST   (64u << 10)

static err decode_message(struct json_in *in, struct json_type *type, ProtobufCMessage *message);

static void *member(ProtobufCMessage *message, size_t offset)
{
    return (char *)message + offset;
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

static bool is_plain(const struct json_in *in)
{
    return in->scope->form == JSON_PLAIN;
}

/* The nearest of them lies in `short_name`, if one is the nearest of all. */
static void offer_short_names(const struct json_field *field, struct nearest *nearest,
                              char short_name[JSON_ENUM_NAME_BYTES])
{
    const ProtobufCEnumDescriptor *type = field->descriptor->descriptor;
    char one[JSON_ENUM_NAME_BYTES];

    for (unsigned i = 0; i < type->n_values; i++) {
        if (type->values[i].value == 0 && field->shape == JSON_SHAPE_VERB)
            continue;
        json_enum_short_name(field, type->values[i].name, one);
        nearest_offer_text(nearest, one);
        if (nearest->name.data != (const uint8_t *)one)
            continue;
        memcpy(short_name, one, sizeof one);
        nearest->name = slice_from_text(short_name);
    }
}

static err fail_enum(struct json_in *in, const struct json_field *field, struct slice name,
                     const uint8_t *from)
{
    const ProtobufCEnumDescriptor *type = field->descriptor->descriptor;
    char short_name[JSON_ENUM_NAME_BYTES] = "";
    struct nearest nearest;

    nearest_init(&nearest, name);
    for (unsigned i = 0; i < type->n_values; i++)
        nearest_offer_text(&nearest, type->values[i].name);
    if (is_plain(in))
        offer_short_names(field, &nearest, short_name);
    return fail_name(in, "an unknown enum name", type->name, from, &nearest);
}

static const ProtobufCEnumValue *find_enum(const struct json_in *in, const struct json_field *field,
                                           struct slice name)
{
    char text[JSON_ENUM_NAME_BYTES];

    if (name.size >= sizeof text)
        return NULL;
    memcpy(text, name.data, name.size);
    text[name.size] = 0;
    const ProtobufCEnumValue *value =
        protobuf_c_enum_descriptor_get_value_by_name(field->descriptor->descriptor, text);
    return value == NULL && is_plain(in) ? json_enum_find_short(field, name) : value;
}

static err decode_enum(struct json_in *in, const struct json_field *field, int32_t *ret_value)
{
    const uint8_t *from = in->at;
    struct slice name;

    if (json_peek(in) != '"') {
        int64_t number;
        err e = json_decode_signed(in, INT32_MIN, INT32_MAX, &number);
        if (e == ERR_OK)
            *ret_value = (int32_t)number;
        return e;
    }
    err e = json_scan_string(in, &name);
    if (e != ERR_OK)
        return e;
    const ProtobufCEnumValue *value = find_enum(in, field, name);
    if (value == NULL)
        return fail_enum(in, field, name, from);
    *ret_value = value->value;
    return ERR_OK;
}

static err copy_text(struct json_in *in, struct slice text, char **ret_text)
{
    char *copy = json_alloc(in, text.size + 1);

    if (copy == NULL)
        return ERR_TOO_LARGE;
    memcpy(copy, text.data, text.size);
    copy[text.size] = 0;
    *ret_text = copy;
    return ERR_OK;
}

static err decode_string(struct json_in *in, char **ret_text)
{
    struct slice text;
    err e;

    if (json_peek(in) != '"')
        return json_fail(in, "not a string", "a string", in->at);
    e = json_scan_string(in, &text);
    return e == ERR_OK ? copy_text(in, text, ret_text) : e;
}

/* Any JSON value at the cursor, as its text. */
static err decode_span(struct json_in *in, char **ret_text)
{
    struct json_flaw flaw;
    const uint8_t *from = in->at;
    const uint8_t *behind = json_document_end(from, in->end, &flaw);

    if (behind == NULL)
        return json_fail(in, flaw.why, flaw.limit, flaw.at);
    in->at = behind;
    return copy_text(in, (struct slice){ from, (size_t)(behind - from) }, ret_text);
}

/* Luau encodes an empty table as []. */
static err decode_document(struct json_in *in, char **ret_text)
{
    const uint8_t *from = in->at;

    if (json_peek(in) == '"')
        return decode_string(in, ret_text);
    if (json_peek(in) == '[') {
        in->at++;
        json_skip_space(in);
        if (json_peek(in) == ']') {
            in->at++;
            return copy_text(in, SLICE_LITERAL("{}"), ret_text);
        }
        in->at = from;
    }
    return decode_span(in, ret_text);
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

static err fail_deep(struct json_in *in)
{
    (void)json_fail_large(in, "nested too deeply", CODEC_DEPTH_MAX);
    return ERR_INVALID;
}

static err decode_submessage(struct json_in *in, struct json_field *field,
                             ProtobufCMessage **ret_message)
{
    struct json_type *type = json_type_of_field(in->codec, field);
    ProtobufCMessage *message;
    err e;

    if (in->depth >= CODEC_DEPTH_MAX)
        return fail_deep(in);
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
        e = json_decode_signed(in, INT32_MIN, INT32_MAX, &number);
        return *(int32_t *)slot = (int32_t)number, e;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return json_decode_signed(in, INT64_MIN, INT64_MAX, slot);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        e = json_decode_unsigned(in, UINT32_MAX, &natural);
        return *(uint32_t *)slot = (uint32_t)natural, e;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return json_decode_unsigned(in, UINT64_MAX, slot);
    case PROTOBUF_C_TYPE_FLOAT:
        e = json_decode_floating(in, 3.4028235677973366e38, &real);
        return *(float *)slot = (float)real, e;
    case PROTOBUF_C_TYPE_DOUBLE:
        return json_decode_floating(in, 1.7976931348623157e308, slot);
    case PROTOBUF_C_TYPE_BOOL:
        return decode_bool(in, slot);
    case PROTOBUF_C_TYPE_ENUM:
        return decode_enum(in, field, slot);
    case PROTOBUF_C_TYPE_STRING:
        if (is_plain(in) && (field->shape == JSON_SHAPE_DOCUMENT ||
                             (field->shape == JSON_SHAPE_OPERAND && json_peek(in) != '"')))
            return field->shape == JSON_SHAPE_DOCUMENT ? decode_document(in, slot)
                                                       : decode_span(in, slot);
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

/* Whether the list is an object in plain JSON: {"gold": 5}. */
static bool is_map(struct json_in *in, struct json_field *field)
{
    return is_plain(in) && field->descriptor->type == PROTOBUF_C_TYPE_MESSAGE &&
           json_type_of_field(in->codec, field)->key != NULL;
}

/* Behind the first '[': values with commas, and the ']'. */
static err decode_elements(struct json_in *in, struct json_field *field, struct elements *list)
{
    struct json_path path = { .up = in->path, .kind = JSON_STEP_ELEMENT };
    err e = ERR_OK;

    if (field->descriptor->type == PROTOBUF_C_TYPE_MESSAGE)
        path.key = json_type_of_field(in->codec, field)->key;
    in->path = &path;
    for (;;) {
        void *slot = elements_add(in, list);
        if (slot == NULL)
            return ERR_TOO_LARGE;
        path.index = list->count - 1;
        json_skip_space(in);
        path.from = in->at;
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

static err decode_map(struct json_in *in, struct json_field *field, ProtobufCMessage *message);

static err decode_repeated(struct json_in *in, struct json_field *field, ProtobufCMessage *message)
{
    struct elements list = { .size = json_field_size(field->descriptor) };
    err e;

    if (json_peek(in) == '{' && is_map(in, field))
        return decode_map(in, field, message);
    if (json_peek(in) != '[')
        return is_map(in, field) ? json_fail(in, "not an object", "an object", in->at)
                                 : json_fail(in, "not an array", "an array", in->at);
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
    char verb[JSON_ENUM_NAME_BYTES] = "";
    if (is_plain(in) && type->verb != NULL)
        offer_short_names(type->verb, &nearest, verb);
    return fail_name(in, "no such field", type->descriptor->name, NULL, &nearest);
}

/* ": value" */
static inline err take_colon(struct json_in *in)
{
    json_skip_space(in);
    if (json_peek(in) != ':')
        return json_fail(in, "expected : behind a field name", ":", in->at);
    in->at++;
    json_skip_space(in);
    return ERR_OK;
}

static int32_t *verb_of(const struct json_type *type, ProtobufCMessage *message)
{
    return member(message, type->verb->descriptor->offset);
}

/* A step says once what it does: in a member of that name, or in `kind`, which may repeat it. */
static err fail_two_verbs(struct json_in *in)
{
    return json_fail(in, "the step says twice what it does", "one of its edits", NULL);
}

/* "increment": 40. The bit above all fields tells that there was such a member. */
static err decode_verb(struct json_in *in, struct json_type *type, ProtobufCMessage *message,
                       uint64_t *seen)
{
    const ProtobufCEnumValue *value = json_enum_find_short(type->verb, in->path->name);
    int32_t *verb = verb_of(type, message);
    err e;

    if (value == NULL || value->value == 0)
        return fail_field(in, type, in->path->name);
    if ((*seen & (JSON_SEEN_VERB | 1ull << type->operand->place)) != 0 ||
        (*verb != 0 && *verb != value->value))
        return fail_two_verbs(in);
    *seen |= JSON_SEEN_VERB;
    *verb = value->value;
    e = take_colon(in);
    if (e != ERR_OK)
        return e;
    if (value->value != JSON_VERB_BARE)
        return decode_span(in, member(message, type->operand->descriptor->offset));
    return json_take_word(in, "true") ? ERR_OK : json_fail(in, "not true", "true", in->at);
}

static inline err decode_behind_name(struct json_in *in, struct json_type *type,
                                     struct json_field *field, ProtobufCMessage *message,
                                     uint64_t *seen)
{
    int32_t before = type->verb == field ? *verb_of(type, message) : 0;
    err e;

    if (type->operand == field && (*seen & JSON_SEEN_VERB) != 0)
        return fail_two_verbs(in);
    *seen |= 1ull << field->place;
    e = take_colon(in);
    if (e != ERR_OK)
        return e;
    e = decode_field(in, field, message);
    if (e == ERR_OK && before != 0 && *verb_of(type, message) != before)
        return fail_two_verbs(in);
    return e;
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
        e = is_plain(in) && type->verb != NULL ? decode_verb(in, type, message, seen)
                                               : fail_field(in, type, path.name);
    else if (*seen & 1ull << field->place)
        return json_fail(in, "the field is there twice", "once", NULL);
    else {
        path.field = field->descriptor->name;
        e = decode_behind_name(in, type, field, message, seen);
    }
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

/* ---- plain JSON ---- */

/* {"gold": 5}: errors name the field that the 5 is, as if it had been written out. */
static err decode_bare_value(struct json_in *in, struct json_type *type, ProtobufCMessage *message)
{
    struct json_path path = { .up = in->path, .field = type->value->descriptor->name };
    err e;

    in->path = &path;
    e = decode_value(in, type->value, member(message, type->value->descriptor->offset));
    if (e == ERR_OK)
        in->path = path.up;
    return e;
}

/* The value that stands under a name in a map. */
static err decode_entry_value(struct json_in *in, struct json_type *type, ProtobufCMessage *message)
{
    const char *key = json_field_text(type->key, message);
    uint8_t first = json_peek(in);
    uint64_t seen = 0;

    if (type->value != NULL && first != '{' && first != '[')
        return decode_bare_value(in, type, message);
    err e = decode_members(in, type, message, &seen);
    if (e != ERR_OK)
        return e;
    if (strcmp(json_field_text(type->key, message), key) != 0)
        return json_fail(in, "its name is not the one under which it stands", key, NULL);
    return check_required(in, type, seen | 1ull << type->key->place);
}

/* The name, which is the key of the entry. */
static err decode_entry_name(struct json_in *in, struct json_type *type, ProtobufCMessage *message,
                             struct slice *ret_name)
{
    struct json_path path = { .up = in->path, .field = type->key->descriptor->name };

    in->path = &path;
    err e = json_scan_string(in, ret_name);
    if (e == ERR_OK)
        e = copy_text(in, *ret_name, member(message, type->key->descriptor->offset));
    if (e == ERR_OK)
        in->path = path.up;
    return e;
}

/* "name": value; an element of the list, whose key is the name. */
static err decode_entry(struct json_in *in, struct json_type *type, size_t place,
                        ProtobufCMessage **ret_message)
{
    struct json_path path = { .up = in->path, .kind = JSON_STEP_ENTRY, .index = place };
    ProtobufCMessage *message = json_alloc(in, type->descriptor->sizeof_message);
    err e;

    if (message == NULL)
        return ERR_TOO_LARGE;
    protobuf_c_message_init(type->descriptor, message);
    if (json_peek(in) != '"')
        return json_fail(in, "expected a name", "\"", in->at);
    in->path = &path;
    e = decode_entry_name(in, type, message, &path.name);
    if (e == ERR_OK)
        e = take_colon(in);
    if (e == ERR_OK)
        e = decode_entry_value(in, type, message);
    if (e == ERR_OK)
        in->path = path.up;
    *ret_message = message;
    return e;
}

/* Behind the '{': entries with commas, and the '}'. */
static err decode_entries(struct json_in *in, struct json_type *type, struct elements *list)
{
    for (;;) {
        ProtobufCMessage **slot = elements_add(in, list);
        if (slot == NULL)
            return ERR_TOO_LARGE;
        err e = decode_entry(in, type, list->count - 1, slot);
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

static err fail_twin(struct json_in *in, const char *name, size_t place)
{
    struct json_path path = {
        .up = in->path, .kind = JSON_STEP_ENTRY, .name = slice_from_text(name), .index = place
    };

    in->path = &path;
    return json_fail(in, "the name is there twice", "once", NULL);
}

/* A list of named things: {"gold": 5}, {"progression": {...}}. */
static err decode_map(struct json_in *in, struct json_field *field, ProtobufCMessage *message)
{
    struct json_type *type = json_type_of_field(in->codec, field);
    struct elements list = { .size = sizeof(ProtobufCMessage *) };
    err e = ERR_OK;

    if (in->depth >= CODEC_DEPTH_MAX)
        return fail_deep(in);
    in->at++;
    json_skip_space(in);
    if (json_peek(in) == '}') {
        in->at++;
        return ERR_OK;
    }
    in->depth++;
    e = decode_entries(in, type, &list);
    in->depth--;
    if (e != ERR_OK)
        return e;
    ProtobufCMessage **made = (ProtobufCMessage **)(void *)list.data;
    size_t twin = json_type_find_twin(type, made, list.count);
    if (twin < list.count)
        return fail_twin(in, json_field_text(type->key, made[twin]), twin);
    *(void **)member(message, field->descriptor->offset) = list.data;
    *(size_t *)member(message, field->descriptor->quantifier_offset) = list.count;
    return ERR_OK;
}

/* [...]: errors name the field that the list is, as if it had been written out. */
static err decode_bare_list(struct json_in *in, struct json_type *type, ProtobufCMessage *message)
{
    struct json_path path = { .up = in->path, .field = type->list->descriptor->name };

    in->path = &path;
    err e = decode_repeated(in, type->list, message);
    if (e == ERR_OK)
        in->path = path.up;
    return e;
}

static err decode_message(struct json_in *in, struct json_type *type, ProtobufCMessage *message)
{
    uint64_t seen = 0;

    if (is_plain(in) && type->list != NULL && json_peek(in) == '[')
        return decode_bare_list(in, type, message);
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
