#include "runtime/crypto/sha256.h"

#include <string.h>

#include <mbedtls/sha256.h>

#include "runtime/base/check.h"

#if defined(__x86_64__) && !defined(__clang__) /* clang 14 cannot ask for "sha". */
#define SHA256_NATIVE 1
#include <immintrin.h>
#else
#define SHA256_NATIVE 0
#endif

#define BLOCK_BYTES  64u
#define LENGTH_BYTES 8u
#define ROUNDS       64

void sha256_pair_portable(struct slice first, struct slice second, uint8_t ret_hash[SHA256_BYTES])
{
    mbedtls_sha256_context sha;

    mbedtls_sha256_init(&sha);
    CHECK(mbedtls_sha256_starts_ret(&sha, 0) == 0);
    CHECK(mbedtls_sha256_update_ret(&sha, first.data, first.size) == 0);
    CHECK(mbedtls_sha256_update_ret(&sha, second.data, second.size) == 0);
    CHECK(mbedtls_sha256_finish_ret(&sha, ret_hash) == 0);
    mbedtls_sha256_free(&sha);
}

#if SHA256_NATIVE

static const uint32_t round_constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/* The state as the instructions want it: words A B E F and C D G H, highest first. */
struct native_state {
    __m128i abef, cdgh;
};

__attribute__((target("sha,sse4.1,ssse3"))) static void native_block(struct native_state *state,
                                                                     const uint8_t *block)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i abef = state->abef;
    __m128i cdgh = state->cdgh;
    __m128i words[4];

    for (int i = 0; i < 4; i++)
        words[i] = _mm_shuffle_epi8(
            _mm_loadu_si128((const __m128i *)(const void *)(block + 16 * i)), swap);
#pragma GCC unroll 16
    for (int i = 0; i < ROUNDS / 4; i++) {
        __m128i constants = _mm_loadu_si128((const __m128i *)(const void *)&round_constants[4 * i]);
        __m128i sum = _mm_add_epi32(words[i % 4], constants);

        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
        if (i >= ROUNDS / 4 - 4)
            continue;
        /* Four words ahead: w[t-16] + s0(w[t-15]) + w[t-7] + s1(w[t-2]). */
        __m128i next = _mm_sha256msg1_epu32(words[i % 4], words[(i + 1) % 4]);
        next = _mm_add_epi32(next, _mm_alignr_epi8(words[(i + 3) % 4], words[(i + 2) % 4], 4));
        words[i % 4] = _mm_sha256msg2_epu32(next, words[(i + 3) % 4]);
    }
    state->abef = _mm_add_epi32(state->abef, abef);
    state->cdgh = _mm_add_epi32(state->cdgh, cdgh);
}

static void put_word(uint8_t *out, int word)
{
    uint32_t value = (uint32_t)word;

    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(value >> (24 - 8 * i));
}

__attribute__((target("sha,sse4.1,ssse3"))) static void
native_words(const struct native_state *state, uint8_t ret_hash[SHA256_BYTES])
{
    put_word(ret_hash, _mm_extract_epi32(state->abef, 3));
    put_word(ret_hash + 4, _mm_extract_epi32(state->abef, 2));
    put_word(ret_hash + 8, _mm_extract_epi32(state->cdgh, 3));
    put_word(ret_hash + 12, _mm_extract_epi32(state->cdgh, 2));
    put_word(ret_hash + 16, _mm_extract_epi32(state->abef, 1));
    put_word(ret_hash + 20, _mm_extract_epi32(state->abef, 0));
    put_word(ret_hash + 24, _mm_extract_epi32(state->cdgh, 1));
    put_word(ret_hash + 28, _mm_extract_epi32(state->cdgh, 0));
}

/* Takes in whole blocks of `from`, the first of them begun in `block`; returns what `block` then
 * holds of the next one. */
static size_t native_take(struct native_state *state, uint8_t block[BLOCK_BYTES], size_t held,
                          struct slice from)
{
    while (from.size > 0) {
        size_t room = BLOCK_BYTES - held;
        size_t size = from.size < room ? from.size : room;

        memcpy(block + held, from.data, size);
        from = (struct slice){ from.data + size, from.size - size };
        held += size;
        if (held < BLOCK_BYTES)
            break;
        native_block(state, block);
        held = 0;
    }
    return held;
}

static void native_pair(struct slice first, struct slice second, uint8_t ret_hash[SHA256_BYTES])
{
    uint8_t block[BLOCK_BYTES];
    uint64_t bits = 8 * ((uint64_t)first.size + second.size);
    struct native_state state = {
        .abef = _mm_set_epi32(0x6a09e667, (int)0xbb67ae85, 0x510e527f, (int)0x9b05688c),
        .cdgh = _mm_set_epi32(0x3c6ef372, (int)0xa54ff53a, 0x1f83d9ab, 0x5be0cd19),
    };

    size_t held = native_take(&state, block, 0, first);
    held = native_take(&state, block, held, second);
    block[held++] = 0x80;
    if (held > BLOCK_BYTES - LENGTH_BYTES) {
        memset(block + held, 0, BLOCK_BYTES - held);
        native_block(&state, block);
        held = 0;
    }
    memset(block + held, 0, BLOCK_BYTES - LENGTH_BYTES - held);
    for (unsigned i = 0; i < LENGTH_BYTES; i++)
        block[BLOCK_BYTES - LENGTH_BYTES + i] = (uint8_t)(bits >> (56 - 8 * i));
    native_block(&state, block);
    native_words(&state, ret_hash);
}

bool sha256_is_native(void)
{
    return __builtin_cpu_supports("sha") && __builtin_cpu_supports("sse4.1") &&
           __builtin_cpu_supports("ssse3");
}

#else

static void native_pair(struct slice first, struct slice second, uint8_t ret_hash[SHA256_BYTES])
{
    sha256_pair_portable(first, second, ret_hash);
}

bool sha256_is_native(void)
{
    return false;
}

#endif

void sha256_pair(struct slice first, struct slice second, uint8_t ret_hash[SHA256_BYTES])
{
    if (sha256_is_native())
        native_pair(first, second, ret_hash);
    else
        sha256_pair_portable(first, second, ret_hash);
}
