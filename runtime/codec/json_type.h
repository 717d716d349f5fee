/* json_type: what json_codec knows of one message type, made once from its descriptor. Private to
 * runtime/codec. */
#ifndef RUNTIME_CODEC_JSON_TYPE_H
#define RUNTIME_CODEC_JSON_TYPE_H

#include "runtime/codec/json_codec.h"

#define JSON_FIELDS_MAX 64u /* One bit each tells a duplicate key. */

struct json_field {
    const ProtobufCFieldDescriptor *descriptor;
    struct json_type *message; /* Of the field's message type, once it was needed. */
    struct slice name;         /* lowerCamelCase. */
    struct slice prefix;       /* "\"name\":" */
    unsigned place;            /* In the descriptor's order. */
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
/* Bytes of one element of the field in a protobuf-c array. */
size_t json_field_size(const ProtobufCFieldDescriptor *field);

#endif
