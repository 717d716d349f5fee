#include "node/core/row_pool.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "runtime/base/check.h"

#define BLOCK_BYTES_MIN 1024u
#define BLOCK_BYTES_MAX 16384u

#if defined(__SANITIZE_ADDRESS__)
#define POOLED_BYTES_MAX 0u
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POOLED_BYTES_MAX 0u
#endif
#endif
#ifndef POOLED_BYTES_MAX
#define POOLED_BYTES_MAX ROW_POOL_BYTES_MAX
#endif

struct row_pool_free {
    struct row_pool_free *next;
};

struct row_pool_block {
    struct row_pool_block *next;
    size_t bytes;
    _Alignas(16) uint8_t memory[];
};

static bool is_pooled(size_t size_bytes)
{
    return size_bytes <= POOLED_BYTES_MAX;
}

static size_t class_of(size_t size_bytes)
{
    return size_bytes == 0 ? 0 : (size_bytes - 1) / ROW_POOL_STEP_BYTES;
}

/* What the newest block has left over is too small for this one: at most one row's worth. */
static void block_add(struct row_pool *pool)
{
    size_t bytes = pool->block_bytes * 2;

    if (bytes < BLOCK_BYTES_MIN)
        bytes = BLOCK_BYTES_MIN;
    if (bytes > BLOCK_BYTES_MAX)
        bytes = BLOCK_BYTES_MAX;
    struct row_pool_block *block = mem_alloc(sizeof *block + bytes);
    block->next = pool->blocks;
    block->bytes = bytes;
    pool->blocks = block;
    pool->left_bytes = bytes;
    pool->block_bytes = bytes;
}

void *row_pool_take(struct row_pool *pool, size_t size_bytes)
{
    if (!is_pooled(size_bytes))
        return mem_alloc(size_bytes);
    size_t class = class_of(size_bytes);
    struct row_pool_free *first = pool->free[class];
    if (first != NULL) {
        pool->free[class] = first->next;
        /* Freed long ago, most likely: on its way by the time it is taken. */
        if (first->next != NULL)
            __builtin_prefetch(first->next, 1);
        return first;
    }
    size_t bytes = (class + 1) * ROW_POOL_STEP_BYTES;
    if (pool->left_bytes < bytes)
        block_add(pool);
    void *memory = pool->blocks->memory + pool->blocks->bytes - pool->left_bytes;
    pool->left_bytes -= bytes;
    return memory;
}

void row_pool_give(struct row_pool *pool, void *memory, size_t size_bytes)
{
    if (!is_pooled(size_bytes)) {
        free(memory);
        return;
    }
    struct row_pool_free *first = memory;
    first->next = pool->free[class_of(size_bytes)];
    pool->free[class_of(size_bytes)] = first;
}

void row_pool_deinit(struct row_pool *pool)
{
    while (pool->blocks != NULL) {
        struct row_pool_block *next = pool->blocks->next;
        free(pool->blocks);
        pool->blocks = next;
    }
    *pool = (struct row_pool){ 0 };
}
