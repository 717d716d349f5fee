/*
 * json_codec: proto3 JSON to protobuf-c structs and back, driven by the generated descriptors in
 * one pass without a tree in between (JSON was a fifth of the router's processor time; DESIGN
 * sections 10 and 12). For untrusted input. Does no I/O; not for free-form JSON documents.
 *
 * The mapping is the proto3 JSON mapping of protobuf.dev/programming-guides/json, with these
 * choices: unknown fields and unknown enum names are errors; default values are omitted; `[]` is
 * taken for an empty message (Luau has no other empty table); strings may not hold U+0000, since
 * protobuf-c ends its strings with a NUL.
 *
 * Plain JSON is the same schema in the form in which people and game servers write it: documents
 * inline, lists of named things as objects, short names of enums, numbers up to 2^53 as numbers.
 * json_shape.h says which fields are concerned, docs/json.md shows the two side by side.
 *
 * What is there and what is not follows the descriptor: messages of proto2 keep an optional field
 * that was set to its zero or its default, and must have their required ones. (proto3's `optional`
 * is not for us: protoc-c 1.4.1 refuses it.)
 */
#ifndef RUNTIME_CODEC_JSON_CODEC_H
#define RUNTIME_CODEC_JSON_CODEC_H

#include "runtime/codec/codec_scope.h"

#define JSON_CODEC_TYPES_MAX 512u

struct json_type;

/* Tables built from descriptors, on first use of each type. One per thread; at most
 * JSON_CODEC_TYPES_MAX message types. */
struct json_codec {
    struct json_type **types; /* Open addressing by descriptor. */
    size_t type_count;
};

void json_codec_init(struct json_codec *codec);
void json_codec_deinit(struct json_codec *codec);

/*
 * Parses one JSON value of message type `type`, in the form that scope->form names. An input of no
 * bytes is an empty message.
 *
 * @ret_message  on ERR_OK, lives in scope->arena; untouched on error.
 *
 * ERR_INVALID: not this message, or nested deeper than CODEC_DEPTH_MAX; scope->error says where and
 * why. ERR_TOO_LARGE: over one of the scope's limits. On error the arena may have grown.
 */
NODISCARD err json_decode(struct json_codec *codec, const ProtobufCMessageDescriptor *type,
                          struct slice json, struct codec_scope *scope,
                          ProtobufCMessage **ret_message);

/* Appends `message` as JSON of that form, which reads back as the same message. Cannot fail for a
 * message whose strings are UTF-8; other bytes are replaced by U+FFFD. */
void json_encode(struct json_codec *codec, enum json_form form, const ProtobufCMessage *message,
                 struct buf *out);

#endif
