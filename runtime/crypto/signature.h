/*
 * signature: checks signatures of others by their public keys: RSASSA-PKCS1-v1_5 (RFC 8017) and
 * ECDSA on P-256 (FIPS 186-4), both with SHA-256. Nothing is signed here. Pure: no random number is
 * drawn. A key is of one thread: mbedtls keeps a table of the curve in it.
 */
#ifndef RUNTIME_CRYPTO_SIGNATURE_H
#define RUNTIME_CRYPTO_SIGNATURE_H

#include "runtime/base/buf.h"
#include "runtime/base/err.h"
#include "runtime/crypto/sha256.h"

#define SIGNATURE_RSA_BITS_MIN 2048u
/* A longer one would cost the loop several times as much. */
#define SIGNATURE_RSA_BITS_MAX     4096u
#define SIGNATURE_RSA_EXPONENT_MIN 65537u
#define SIGNATURE_P256_BYTES       32u /* Of each coordinate, and of each half of a signature. */
#define SIGNATURE_BYTES_MAX        (SIGNATURE_RSA_BITS_MAX / 8)

struct signature_key;

/* Both numbers big-endian; leading zeros are allowed. ERR_INVALID: *ret_why, a static text, names
 * the limit that is broken; nothing else is touched. */
NODISCARD err signature_key_new_rsa(struct slice modulus, struct slice exponent,
                                    struct signature_key **ret_key, const char **ret_why);
/* Each of SIGNATURE_P256_BYTES. ERR_INVALID: another size, or no point of the curve. */
NODISCARD err signature_key_new_p256(struct slice x, struct slice y, struct signature_key **ret_key,
                                     const char **ret_why);
/* NULL is allowed. */
void signature_key_free(struct signature_key *key);

/* Whether `signature` is the key's over that hash. Of RSA it is as long as the modulus; of P-256 it
 * is r and s, each of SIGNATURE_P256_BYTES (RFC 7518 section 3.4). */
bool signature_is_valid(struct signature_key *key, const uint8_t hash[SHA256_BYTES],
                        struct slice signature);

#endif
