/*
 * hmac: HMAC-SHA-256 (RFC 2104), for what only the cluster can have made: API keys' digests and
 * session tokens. Pure: secrets come from the caller.
 */
#ifndef RUNTIME_CRYPTO_HMAC_H
#define RUNTIME_CRYPTO_HMAC_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"

#define HMAC_BYTES       32u
#define HMAC_BLOCK_BYTES 64u

/* A secret, made ready. Overwrite it (explicit_bzero) when it is no longer needed. */
struct hmac_key {
    uint8_t inner[HMAC_BLOCK_BYTES];
    uint8_t outer[HMAC_BLOCK_BYTES];
};

/* A secret of any length. */
void hmac_key_init(struct hmac_key *key, struct slice secret);
void hmac_sign(const struct hmac_key *key, struct slice message, uint8_t ret_mac[HMAC_BYTES]);
/* Compares in the same time wherever the bytes differ. */
bool hmac_equal(const uint8_t *a, const uint8_t *b, size_t size);

#endif
