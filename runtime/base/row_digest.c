#include "runtime/base/row_digest.h"

void row_digest_add(struct row_digest *digest, struct slice key, struct slice value)
{
    struct hash128 sizes = { { 0 } };

    store_u64(sizes.bytes, key.size);
    store_u64(sizes.bytes + 8, value.size);
    struct hash128 hash = hash_chain(sizes, key, value);
    digest->count++;
    digest->sums[0] += load_u64(hash.bytes);
    digest->sums[1] += load_u64(hash.bytes + 8);
}

struct hash128 row_digest_sum(const struct row_digest *digest)
{
    struct hash128 sum;

    store_u64(sum.bytes, digest->sums[0]);
    store_u64(sum.bytes + 8, digest->sums[1]);
    return sum;
}
