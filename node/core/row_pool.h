/*
 * row_pool: memory for the rows and values of one state. Rows come and go by the thousand, at a
 * checkpoint or an eviction, and a heap then merges and splits its chunks for each of them. Here
 * what was freed is the next to be used: one list per size, nothing is merged. Memory goes back to
 * the heap with the pool; what is larger than ROW_POOL_BYTES_MAX is the heap's own.
 *
 * One thread. Under the address sanitizer everything is the heap's own, so that it sees each use.
 */
#ifndef NODE_CORE_ROW_POOL_H
#define NODE_CORE_ROW_POOL_H

#include <stddef.h>

#define ROW_POOL_STEP_BYTES 16u
#define ROW_POOL_BYTES_MAX  512u
#define ROW_POOL_CLASSES    (ROW_POOL_BYTES_MAX / ROW_POOL_STEP_BYTES)

struct row_pool_free;
struct row_pool_block;

/* A zeroed one is valid. */
struct row_pool {
    struct row_pool_free *free[ROW_POOL_CLASSES]; /* By size. */
    struct row_pool_block *blocks;
    size_t left_bytes; /* Of the newest block, never used. */
    size_t block_bytes;
};

/* Not cleared. */
void *row_pool_take(struct row_pool *pool, size_t size_bytes);
/* `size_bytes` as it was taken. */
void row_pool_give(struct row_pool *pool, void *memory, size_t size_bytes);
/* Everything within ROW_POOL_BYTES_MAX is gone; what was larger must have been given back. */
void row_pool_deinit(struct row_pool *pool);

#endif
