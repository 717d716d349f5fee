#include "node/core/codec/arena_proto.h"

static void *proto_alloc(void *arena, size_t size_bytes)
{
    return arena_alloc(arena, size_bytes);
}

static void proto_free(void *arena, void *pointer)
{
    (void)arena;
    (void)pointer;
}

ProtobufCMessage *arena_unpack(struct arena *arena, const ProtobufCMessageDescriptor *type,
                               struct slice bytes)
{
    ProtobufCAllocator allocator = { .alloc = proto_alloc,
                                     .free = proto_free,
                                     .allocator_data = arena };
    return protobuf_c_message_unpack(type, &allocator, bytes.size, bytes.data);
}

ProtobufCMessage *arena_message(struct arena *arena, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *message = arena_alloc(arena, type->sizeof_message);
    protobuf_c_message_init(type, message);
    return message;
}

struct slice arena_pack(struct arena *arena, const ProtobufCMessage *message)
{
    uint8_t *bytes = arena_alloc(arena, protobuf_c_message_get_packed_size(message));
    return (struct slice){ bytes, protobuf_c_message_pack(message, bytes) };
}

void *arena_messages(struct arena *arena, const ProtobufCMessageDescriptor *type, size_t count)
{
    ProtobufCMessage **messages = arena_alloc(arena, sizeof(ProtobufCMessage *) * count);
    for (size_t i = 0; i < count; i++)
        messages[i] = arena_message(arena, type);
    return messages;
}

char *arena_text(struct arena *arena, struct slice bytes)
{
    return (char *)(uintptr_t)arena_copy(arena, bytes).data;
}
