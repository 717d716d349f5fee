#include "runtime/crypto/hmac.h"

#include <string.h>

#include "runtime/base/check.h"
#include "runtime/crypto/sha256.h"

_Static_assert(HMAC_BYTES == SHA256_BYTES, "the hash below is SHA-256");

void hmac_key_init(struct hmac_key *key, struct slice secret)
{
    uint8_t block[HMAC_BLOCK_BYTES] = { 0 };

    if (secret.size > sizeof block)
        sha256_pair(secret, (struct slice){ 0 }, block);
    else if (secret.size > 0)
        memcpy(block, secret.data, secret.size);
    for (size_t i = 0; i < sizeof block; i++) {
        key->inner[i] = block[i] ^ 0x36;
        key->outer[i] = block[i] ^ 0x5c;
    }
    explicit_bzero(block, sizeof block);
}

void hmac_sign(const struct hmac_key *key, struct slice message, uint8_t ret_mac[HMAC_BYTES])
{
    uint8_t hash[SHA256_BYTES];

    sha256_pair((struct slice){ key->inner, sizeof key->inner }, message, hash);
    sha256_pair((struct slice){ key->outer, sizeof key->outer },
                (struct slice){ hash, sizeof hash }, ret_mac);
}

bool hmac_equal(const uint8_t *a, const uint8_t *b, size_t size)
{
    uint8_t differ = 0;

    for (size_t i = 0; i < size; i++)
        differ |= (uint8_t)(a[i] ^ b[i]);
    return differ == 0;
}
