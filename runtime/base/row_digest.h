/*
 * row_digest: what a set of rows comes to, in whatever order they are added: how many, and the sum
 * of their XXH3-128 hashes in two halves, each modulo 2^64. Backups and restores compare it.
 */
#ifndef RUNTIME_BASE_ROW_DIGEST_H
#define RUNTIME_BASE_ROW_DIGEST_H

#include "runtime/base/hash.h"

struct row_digest {
    uint64_t count;
    uint64_t sums[2];
};

void row_digest_add(struct row_digest *digest, struct slice key, struct slice value);
/* The sums, 16 bytes, little-endian. */
struct hash128 row_digest_sum(const struct row_digest *digest);

#endif
