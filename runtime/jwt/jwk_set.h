/*
 * jwk_set: the public keys (and, out of a file, shared secrets) with which others sign tokens, read
 * from a JWK Set (RFC 7517). Of a set those keys are taken that can check HS256, RS256 or ES256 and
 * are not weak; the others are counted and never used. Which algorithm a key is for is decided
 * here, by the key alone: a token cannot choose it (RFC 8725 section 3.1). Pure.
 */
#ifndef RUNTIME_JWT_JWK_SET_H
#define RUNTIME_JWT_JWK_SET_H

#include "runtime/base/buf.h"
#include "runtime/crypto/hmac.h"
#include "runtime/crypto/signature.h"

#define JWK_SET_BYTES_MAX    65536u
#define JWK_SET_KEYS_MAX     32u
#define JWK_ID_BYTES_MAX     128u
#define JWK_SECRET_BYTES_MIN 32u /* As long as the hash: RFC 7518 section 3.2. */
#define JWK_SECRET_BYTES_MAX 1024u

enum jws_algorithm { JWS_NONE, JWS_HS256, JWS_RS256, JWS_ES256 };

struct jwk {
    char id[JWK_ID_BYTES_MAX + 1]; /* "kid"; empty: it has none. */
    enum jws_algorithm algorithm;
    struct hmac_key secret;           /* HS256. */
    struct signature_key *public_key; /* RS256, ES256. */
};

struct jwk_set {
    struct jwk keys[JWK_SET_KEYS_MAX];
    uint32_t count;
    uint32_t unfit; /* Keys of the document that are not in `keys`. */
};

/* Why a document was refused, or (with ERR_OK) why the first of `unfit` was left out; empty: none
 * was. Of the key, it names the place in the list, never more. */
struct jwk_why {
    char text[128];
};

/*
 * Reads a document of at most JWK_SET_BYTES_MAX. `secrets`: whether keys for HS256 are taken, which
 * a file alone may have: what anyone may fetch is no secret. *ret_set is
 * overwritten; jwk_set_deinit ends it.
 *
 * ERR_INVALID: no JWK Set, or more keys than JWK_SET_KEYS_MAX. ERR_TOO_LARGE: it is too long. Then
 * *ret_set is not touched.
 */
NODISCARD err jwk_set_read(struct slice json, bool secrets, struct jwk_set *ret_set,
                           struct jwk_why *ret_why);
/* A zeroed one is empty, and is so again afterwards. */
void jwk_set_deinit(struct jwk_set *set);

/* JWS_NONE: none of the three, whose names are compared byte by byte. */
enum jws_algorithm jws_algorithm_find(struct slice name);

#endif
