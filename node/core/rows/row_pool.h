/*
 * row_pool: memory for the rows and values of one state. Rows come and go by the thousand, at a
 * checkpoint or an eviction, and a heap then merges and splits its chunks for each of them. Here
 * memory is taken from slabs, each for one size, and what was freed in a slab is the next to be
 * used. A slab that is empty goes back to the heap, but for one of each size: what the pool
 * holds follows what is in use. What is larger than ROW_POOL_BYTES_MAX is the heap's own.
 *
 * One thread. Under the address sanitizer everything is the heap's own, so that it sees each use.
 */
#ifndef NODE_CORE_ROWS_ROW_POOL_H
#define NODE_CORE_ROWS_ROW_POOL_H

#include <stddef.h>

#define ROW_POOL_STEP_BYTES 16u
#define ROW_POOL_BYTES_MAX  512u
#define ROW_POOL_CLASSES    (ROW_POOL_BYTES_MAX / ROW_POOL_STEP_BYTES)
#define ROW_POOL_SLAB_BYTES 8192u

struct row_pool_slab;

/* A zeroed one is valid. */
struct row_pool {
    struct row_pool_slab *roomy[ROW_POOL_CLASSES]; /* Slabs with room, by size. */
    size_t slab_count;
};

/* Not cleared. */
void *row_pool_take(struct row_pool *pool, size_t size_bytes);
/* `size_bytes` as it was taken. */
void row_pool_give(struct row_pool *pool, void *memory, size_t size_bytes);
/* Everything must have been given back. */
void row_pool_deinit(struct row_pool *pool);

#endif
