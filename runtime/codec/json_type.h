/* json_type: what json_codec knows of one message type, made once from its descriptor. Private to
 * runtime/codec. */
#ifndef RUNTIME_CODEC_JSON_TYPE_H
#define RUNTIME_CODEC_JSON_TYPE_H

#include "runtime/codec/json_codec.h"
#include "runtime/codec/json_shape.h"

#define JSON_VERB_BARE  2            /* The verb that has no operand: REMOVE of a step. */
#define JSON_FIELDS_MAX 63u          /* One bit each tells a duplicate key. */
#define JSON_SEEN_VERB  (1ull << 63) /* A member of a verb's name was there. */

struct json_field {
    const ProtobufCFieldDescriptor *descriptor;
    struct json_type *message; /* Of the field's message type, once it was needed. */
    struct slice name;         /* lowerCamelCase. */
    struct slice prefix;       /* ",\"name\":" */
    unsigned place;            /* In the descriptor's order. */
    enum json_shape shape;     /* In plain JSON. */
    size_t enum_prefix;        /* How much of an enum's names plain JSON leaves out. */
};

struct json_slot {
    struct slice name;
    struct json_field *field; /* NULL: free. */
};

struct json_type {
    const ProtobufCMessageDescriptor *descriptor;
    struct json_field *fields;
    struct json_slot *slots; /* Both spellings of every name; open addressing. */
    size_t slot_mask;
    /* Plain JSON; each is NULL where the message has none. */
    struct json_field *key, *value, *list, *verb, *operand;
    uint64_t required;  /* proto2: a bit for each field that must be there, by place. */
    struct arena arena; /* Of all the above. */
};

struct json_type *json_type_get(struct json_codec *codec, const ProtobufCMessageDescriptor *type);
/* The type of a message field. */
struct json_type *json_type_of_field(struct json_codec *codec, struct json_field *field);
/* NULL when there is no such field. */
struct json_field *json_type_find_field(const struct json_type *type, struct slice name);
/* proto2's `has_x` of an optional number, enum, boolean or bytes; NULL: the field has none, since
 * it is of proto3, a pointer, an array or in a oneof. */
protobuf_c_boolean *json_field_presence(const ProtobufCFieldDescriptor *field,
                                        const ProtobufCMessage *message);
/* The place of the first element of a list whose key stands at an earlier one, too; `count`: the
 * keys differ. The elements have a key. */
size_t json_type_find_twin(const struct json_type *type, ProtobufCMessage *const *list,
                           size_t count);
/* The key of an element, or another string of a message; never NULL. */
const char *json_field_text(const struct json_field *field, const ProtobufCMessage *message);
/* Of the names of an enum, "START_MODE_STEAL" and "steal". 80 bytes hold any; empty: it is longer.
 */
#define JSON_ENUM_NAME_BYTES 80u
void json_enum_short_name(const struct json_field *field, const char *name,
                          char ret_short[JSON_ENUM_NAME_BYTES]);
/* By its short name; NULL: there is no such value. */
const ProtobufCEnumValue *json_enum_find_short(const struct json_field *field, struct slice name);
/* Bytes of one element of the field in a protobuf-c array. */
size_t json_field_size(const ProtobufCFieldDescriptor *field);

#endif
