#include "runtime/base/hash.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

static struct hash128 hash_from(XXH128_hash_t h)
{
    XXH128_canonical_t canonical;
    struct hash128 out;

    XXH128_canonicalFromHash(&canonical, h);
    memcpy(out.bytes, canonical.digest, sizeof out.bytes);
    return out;
}

uint64_t hash_u64(struct slice bytes)
{
    return XXH3_64bits(bytes.data, bytes.size);
}

struct hash128 hash_u128(struct slice bytes)
{
    return hash_from(XXH3_128bits(bytes.data, bytes.size));
}

struct hash128 hash_chain(struct hash128 previous, struct slice a, struct slice b)
{
    XXH3_state_t state;

    XXH3_INITSTATE(&state);
    XXH3_128bits_reset(&state);
    XXH3_128bits_update(&state, previous.bytes, sizeof previous.bytes);
    XXH3_128bits_update(&state, a.data, a.size);
    XXH3_128bits_update(&state, b.data, b.size);
    return hash_from(XXH3_128bits_digest(&state));
}

bool hash128_equal(struct hash128 a, struct hash128 b)
{
    return memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
}
