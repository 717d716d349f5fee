/*
 * arena: memory for one request or one step, freed all at once. Not for anything that outlives
 * the step. Also serves as a protobuf-c allocator.
 */
#ifndef RUNTIME_BASE_ARENA_H
#define RUNTIME_BASE_ARENA_H

#include <stddef.h>

#include "runtime/base/buf.h"

struct arena_block;

/* Blocks that arenas of one thread give back when they are reset: the next one to need memory takes
 * what was used last, which the processor still has in its caches. A zeroed pool is valid. */
struct arena_pool {
    struct arena_block *blocks; /* Given back last, first. */
    size_t count;
};

/* A zeroed arena is valid and empty. */
struct arena {
    struct arena_block *blocks; /* Newest first. */
    size_t used;                /* Of the newest block. */
    size_t total_bytes;         /* Handed out since the last reset. */
    struct arena_pool *pool;    /* Borrowed; NULL: blocks of its own. */
};

/* Never NULL; aligned for any type; uninitialised. */
void *arena_alloc(struct arena *arena, size_t size_bytes);
void *arena_zalloc(struct arena *arena, size_t size_bytes);
/* A copy with a NUL behind it (not counted in size). */
struct slice arena_copy(struct arena *arena, struct slice bytes);
/* A copy of the text; of NULL an empty one. */
char *arena_copy_text(struct arena *arena, const char *text);
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Forgets everything. Without a pool it keeps one block for the next use. */
void arena_reset(struct arena *arena);
void arena_deinit(struct arena *arena);
/* After the arenas that use it. */
void arena_pool_deinit(struct arena_pool *pool);

#endif
