/*
 * sha256: SHA-256 (FIPS 180-4) of two texts, one behind the other: what a ledger's chain needs of
 * it. A processor that has instructions for it does a block in a fifth of the time; elsewhere, and
 * where the compiler cannot ask the processor, mbedtls does it. The hash is the same.
 */
#ifndef RUNTIME_CRYPTO_SHA256_H
#define RUNTIME_CRYPTO_SHA256_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"

#define SHA256_BYTES 32u

/* `ret_hash` may be where `first` or `second` is. */
void sha256_pair(struct slice first, struct slice second, uint8_t ret_hash[SHA256_BYTES]);

/* The same by mbedtls alone. */
void sha256_pair_portable(struct slice first, struct slice second, uint8_t ret_hash[SHA256_BYTES]);

/* Whether sha256_pair uses the processor's instructions here. */
bool sha256_is_native(void);

#endif
