#include "runtime/base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/watched_memory.h"

/* The address sanitizer sees a block as one piece of memory. It is told which bytes of it were
 * handed out, and each piece has a gap behind it: who writes past its end is found at once. */
#define GAP_BYTES (MEMORY_IS_WATCHED ? 16u : 0u)

#define ARENA_ALIGN       16u
#define ARENA_BLOCK_BYTES 8192u
#define POOL_BLOCKS_MAX   64u

struct arena_block {
    struct arena_block *next;
    size_t capacity;
    _Alignas(16) unsigned char data[];
};

static struct arena_block *block_new(struct arena *arena, size_t capacity)
{
    struct arena_pool *pool = arena->pool;
    struct arena_block *block;

    if (pool != NULL && pool->blocks != NULL && capacity == ARENA_BLOCK_BYTES) {
        block = pool->blocks;
        pool->blocks = block->next;
        pool->count--;
    } else {
        block = mem_alloc(sizeof *block + capacity);
        block->capacity = capacity;
    }
    block->next = arena->blocks;
    arena->blocks = block;
    arena->used = 0;
    memory_forbid(block->data, block->capacity);
    return block;
}

void *arena_alloc(struct arena *arena, size_t size_bytes)
{
    CHECK(size_bytes < SIZE_MAX / 2);
    size_t size = ((size_bytes + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1)) + GAP_BYTES;
    struct arena_block *block = arena->blocks;

    if (block == NULL || block->capacity - arena->used < size)
        block = block_new(arena, size > ARENA_BLOCK_BYTES ? size : ARENA_BLOCK_BYTES);
    void *at = block->data + arena->used;
    memory_hand_out(at, size_bytes);
    arena->used += size;
    arena->total_bytes += size;
    return at;
}

void *arena_zalloc(struct arena *arena, size_t size_bytes)
{
    return memset(arena_alloc(arena, size_bytes), 0, size_bytes);
}

struct slice arena_copy(struct arena *arena, struct slice bytes)
{
    uint8_t *copy = arena_alloc(arena, bytes.size + 1);
    if (bytes.size > 0)
        memcpy(copy, bytes.data, bytes.size);
    copy[bytes.size] = 0;
    return (struct slice){ copy, bytes.size };
}

char *arena_copy_text(struct arena *arena, const char *text)
{
    return text_lend(
        (const char *)arena_copy(arena, slice_from_text(text != NULL ? text : "")).data);
}

/* Most texts fit behind what the block holds, and are printed once. */
char *arena_printf(struct arena *arena, const char *format, ...)
{
    struct arena_block *block = arena->blocks;
    size_t room = block != NULL && GAP_BYTES == 0 ? block->capacity - arena->used : 0;
    char *behind = room > 0 ? (char *)block->data + arena->used : NULL;
    va_list args;

    va_start(args, format);
    int length = vsnprintf(behind, room, format, args);
    va_end(args);
    CHECK(length >= 0);
    char *text = arena_alloc(arena, (size_t)length + 1);
    if (text == behind)
        return text;
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

static void blocks_free(struct arena_block *block)
{
    while (block != NULL) {
        struct arena_block *next = block->next;
        free(block);
        block = next;
    }
}

static void blocks_give_back(struct arena_pool *pool, struct arena_block *block)
{
    while (block != NULL) {
        struct arena_block *next = block->next;
        if (block->capacity == ARENA_BLOCK_BYTES && pool->count < POOL_BLOCKS_MAX) {
            block->next = pool->blocks;
            pool->blocks = block;
            pool->count++;
        } else {
            free(block);
        }
        block = next;
    }
}

void arena_reset(struct arena *arena)
{
    struct arena_block *keep = arena->blocks;

    if (keep == NULL)
        return; /* Nothing was asked of it. */
    if (arena->pool != NULL) {
        blocks_give_back(arena->pool, keep);
        keep = NULL;
    } else if (keep != NULL && keep->capacity > ARENA_BLOCK_BYTES) {
        blocks_free(keep);
        keep = NULL;
    } else if (keep != NULL) {
        blocks_free(keep->next);
        keep->next = NULL;
    }
    if (keep != NULL)
        memory_forbid(keep->data, keep->capacity);
    *arena = (struct arena){ .blocks = keep, .pool = arena->pool };
}

void arena_deinit(struct arena *arena)
{
    blocks_free(arena->blocks);
    *arena = (struct arena){ 0 };
}

void arena_pool_deinit(struct arena_pool *pool)
{
    blocks_free(pool->blocks);
    *pool = (struct arena_pool){ 0 };
}
