/*
 * answer_sizes: how large the answers to recent reads were, so that one which would have no room is
 * refused before its rows are read. Reads are the same that name the same entity, page and
 * `include`. A guess: another read may take the place, filters are not looked at, and the answer
 * may have changed. Pure, of a fixed size.
 */
#ifndef NODE_CORE_SHARD_ANSWER_SIZES_H
#define NODE_CORE_SHARD_ANSWER_SIZES_H

#include "runtime/base/buf.h"

#define ANSWER_SIZES_COUNT 64u /* A power of two. */

/* A zeroed one is valid and knows nothing. */
struct answer_sizes {
    struct {
        uint64_t read; /* Its name, hashed. */
        uint32_t bytes;
    } places[ANSWER_SIZES_COUNT];
};

void answer_sizes_note(struct answer_sizes *sizes, uint32_t method, struct slice request,
                       size_t bytes);
/* 0: not known. */
size_t answer_sizes_find(const struct answer_sizes *sizes, uint32_t method, struct slice request);

#endif
