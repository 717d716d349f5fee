/*
 * proto_unpack: protobuf_c_message_unpack into an arena, in one pass. Nodes unpack each request
 * when it comes in, when its rows are named and when it is applied: the library's two passes, with
 * a list of members between them, cost twice as much.
 *
 * What programs hardly ever write is left to the library, so that its rules hold for it: unknown
 * fields, a message or a oneof told twice, a packed list in two parts, other wire types, and all
 * that is malformed.
 */
#ifndef NODE_CORE_CODEC_PROTO_UNPACK_H
#define NODE_CORE_CODEC_PROTO_UNPACK_H

#include <protobuf-c/protobuf-c.h>

#include "runtime/base/arena.h"

/* NULL: ask the library. */
ProtobufCMessage *proto_unpack(struct arena *arena, const ProtobufCMessageDescriptor *type,
                               struct slice bytes);

#endif
