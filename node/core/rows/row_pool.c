#include "node/core/rows/row_pool.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "runtime/base/check.h"

/* What the heap writes before a block: with it, slabs stand side by side. */
#define HEAP_HEADER_BYTES 16u

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

/* At a multiple of ROW_POOL_SLAB_BYTES, so that it is found from what is in it. */
struct row_pool_slab {
    struct row_pool_slab *previous, *next; /* With room, of the same size. */
    struct row_pool_free *free;
    uint32_t used_count;
    uint32_t fresh_offset; /* In `memory`: from here on never used. */
    _Alignas(16) uint8_t memory[];
};
#define MEMORY_BYTES (ROW_POOL_SLAB_BYTES - HEAP_HEADER_BYTES - sizeof(struct row_pool_slab))

static bool is_pooled(size_t size_bytes)
{
    return POOLED_BYTES_MAX > 0 && size_bytes <= POOLED_BYTES_MAX;
}

static size_t class_of(size_t size_bytes)
{
    return size_bytes == 0 ? 0 : (size_bytes - 1) / ROW_POOL_STEP_BYTES;
}

static size_t class_bytes(size_t class)
{
    return (class + 1) * ROW_POOL_STEP_BYTES;
}

static bool is_full(const struct row_pool_slab *slab, size_t class)
{
    return slab->free == NULL && slab->fresh_offset + class_bytes(class) > MEMORY_BYTES;
}

static void list_add(struct row_pool *pool, struct row_pool_slab *slab, size_t class)
{
    slab->previous = NULL;
    slab->next = pool->roomy[class];
    if (slab->next != NULL)
        slab->next->previous = slab;
    pool->roomy[class] = slab;
}

static void list_remove(struct row_pool *pool, struct row_pool_slab *slab, size_t class)
{
    *(slab->previous != NULL ? &slab->previous->next : &pool->roomy[class]) = slab->next;
    if (slab->next != NULL)
        slab->next->previous = slab->previous;
}

static struct row_pool_slab *slab_add(struct row_pool *pool, size_t class)
{
    void *memory = NULL;

    CHECK(posix_memalign(&memory, ROW_POOL_SLAB_BYTES, ROW_POOL_SLAB_BYTES - HEAP_HEADER_BYTES) ==
          0);
    struct row_pool_slab *slab = memory;
    *slab = (struct row_pool_slab){ 0 };
    list_add(pool, slab, class);
    pool->slab_count++;
    return slab;
}

void *row_pool_take(struct row_pool *pool, size_t size_bytes)
{
    if (!is_pooled(size_bytes))
        return mem_alloc(size_bytes);
    size_t class = class_of(size_bytes);
    struct row_pool_slab *slab = pool->roomy[class];
    if (slab == NULL)
        slab = slab_add(pool, class);
    void *memory = slab->free;
    if (memory != NULL) {
        slab->free = slab->free->next;
        /* Freed long ago, most likely: on its way by the time it is taken. */
        if (slab->free != NULL)
            __builtin_prefetch(slab->free, 1);
    } else {
        memory = slab->memory + slab->fresh_offset;
        slab->fresh_offset += (uint32_t)class_bytes(class);
    }
    slab->used_count++;
    if (is_full(slab, class))
        list_remove(pool, slab, class);
    return memory;
}

void row_pool_give(struct row_pool *pool, void *memory, size_t size_bytes)
{
    if (!is_pooled(size_bytes)) {
        free(memory);
        return;
    }
    size_t class = class_of(size_bytes);
    uintptr_t inside = (uintptr_t)memory % ROW_POOL_SLAB_BYTES;
    struct row_pool_slab *slab = (struct row_pool_slab *)((uint8_t *)memory - inside);
    struct row_pool_free *first = memory;
    CHECK(slab->used_count > 0);
    if (is_full(slab, class))
        list_add(pool, slab, class);
    first->next = slab->free;
    slab->free = first;
    if (--slab->used_count > 0 || (slab->previous == NULL && slab->next == NULL))
        return;
    list_remove(pool, slab, class);
    CHECK(pool->slab_count > 0);
    free(slab);
    pool->slab_count--;
}

void row_pool_deinit(struct row_pool *pool)
{
    for (size_t class = 0; class < ROW_POOL_CLASSES; class ++) {
        struct row_pool_slab *slab = pool->roomy[class];
        if (slab == NULL)
            continue;
        CHECK(slab->used_count == 0 && slab->next == NULL);
        free(slab);
        pool->slab_count--;
    }
    CHECK(pool->slab_count == 0);
    *pool = (struct row_pool){ 0 };
}
