/* arena_proto: protobuf-c messages in an arena: decoded, made and encoded without malloc. */
#ifndef NODE_CORE_CODEC_ARENA_PROTO_H
#define NODE_CORE_CODEC_ARENA_PROTO_H

#include <protobuf-c/protobuf-c.h>

#include "runtime/base/arena.h"

/* NULL: malformed. The message lives in the arena; never free it. */
ProtobufCMessage *arena_unpack(struct arena *arena, const ProtobufCMessageDescriptor *type,
                               struct slice bytes);
/* An empty message. */
ProtobufCMessage *arena_message(struct arena *arena, const ProtobufCMessageDescriptor *type);
struct slice arena_pack(struct arena *arena, const ProtobufCMessage *message);
/* An array of pointers to `count` empty messages, for a repeated field. */
void *arena_messages(struct arena *arena, const ProtobufCMessageDescriptor *type, size_t count);
/* A NUL-terminated copy. */
char *arena_text(struct arena *arena, struct slice bytes);

#endif
