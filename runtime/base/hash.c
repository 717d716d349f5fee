#include "runtime/base/hash.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define CHAIN_BYTES_COPIED 512u

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
    uint8_t whole[CHAIN_BYTES_COPIED];
    XXH3_state_t state;

    /* The same hash: of what is short, the streaming state costs more than a copy. */
    if (a.size + b.size <= sizeof whole - sizeof previous.bytes) {
        memcpy(whole, previous.bytes, sizeof previous.bytes);
        if (a.size > 0)
            memcpy(whole + sizeof previous.bytes, a.data, a.size);
        if (b.size > 0)
            memcpy(whole + sizeof previous.bytes + a.size, b.data, b.size);
        return hash_u128((struct slice){ whole, sizeof previous.bytes + a.size + b.size });
    }
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

void buf_put_hash(struct buf *buf, struct hash128 hash)
{
    buf_append(buf, hash.bytes, sizeof hash.bytes);
}

struct hash128 read_hash(struct reader *reader)
{
    struct slice bytes = read_raw(reader, sizeof(struct hash128));
    struct hash128 hash = { { 0 } };

    if (bytes.size == sizeof hash.bytes)
        memcpy(hash.bytes, bytes.data, sizeof hash.bytes);
    return hash;
}
