/*
 * hash: XXH3 (Collet, xxHash specification). Fixed seeds: the same bytes hash alike in every
 * process and on every machine, since shards, chains and digests are built on it. Not for secrets.
 */
#ifndef RUNTIME_BASE_HASH_H
#define RUNTIME_BASE_HASH_H

#include "runtime/base/buf.h"

struct hash128 {
    uint8_t bytes[16];
};

uint64_t hash_u64(struct slice bytes);
struct hash128 hash_u128(struct slice bytes);
/* One link of a chain: XXH3-128 over `previous`, then a, then b. */
struct hash128 hash_chain(struct hash128 previous, struct slice a, struct slice b);
bool hash128_equal(struct hash128 a, struct hash128 b);
/* Its bytes, as they are. */
void buf_put_hash(struct buf *buf, struct hash128 hash);
/* Zero where the reader runs short. */
struct hash128 read_hash(struct reader *reader);

#endif
