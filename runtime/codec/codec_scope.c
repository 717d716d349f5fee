#include "runtime/codec/codec_scope.h"

static void *scope_alloc(void *arena, size_t size)
{
    return arena_alloc(arena, size);
}

static void scope_free(void *arena, void *pointer)
{
    (void)arena;
    (void)pointer;
}

ProtobufCAllocator codec_arena_allocator(struct arena *arena)
{
    return (ProtobufCAllocator){ scope_alloc, scope_free, arena };
}
