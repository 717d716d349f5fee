/*
 * jws: a token in the compact form of JSON Web Signature (RFC 7515 section 3.1): what it says of
 * its key, what was signed, and whether the signature is a key's. Nothing in its header is trusted
 * but as a name to compare: a key or an address in it is never looked at (RFC 8725 section 3.10).
 * Pure.
 */
#ifndef RUNTIME_JWT_JWS_H
#define RUNTIME_JWT_JWS_H

#include "runtime/jwt/jwk_set.h"

#define JWS_TEXT_MAX        8192u
#define JWS_HEADER_TEXT_MAX 2048u

/* Why a token is refused. */
/*    enumerator    text          meaning */
#define JWT_FAULTS(X)                                                                              \
    X(FORM, "form", "no JWS in compact form, or no claims of a JWT")                               \
    X(ALGORITHM, "algorithm", "alg is none of the three, or not its key's")                        \
    X(UNKNOWN_KEY, "unknown_key", "no key of the set is the one that it names")                    \
    X(SIGNATURE, "signature", "not signed by that key")                                            \
    X(EXPIRED, "expired", "exp has passed")                                                        \
    X(NOT_YET, "not_yet", "nbf or iat is in the future")                                           \
    X(AUDIENCE, "audience", "aud names others")                                                    \
    X(ISSUER, "issuer", "iss names another")                                                       \
    X(SUBJECT, "subject", "sub is no player's id")

enum jwt_fault {
    JWT_OK,
#define JWT_FAULT_ENUM(enumerator, text, meaning) JWT_##enumerator,
    JWT_FAULTS(JWT_FAULT_ENUM)
#undef JWT_FAULT_ENUM
        JWT_FAULT_COUNT
};

/* Texts are static, and hold nothing of the token. */
struct jwt_refusal {
    enum jwt_fault fault;
    const char *field; /* "alg", "exp": of header or claims; "token": the whole. */
    const char *limit; /* What is expected of it. */
};

/* Fills *ret_refusal and returns the fault, for those who find one. */
static inline enum jwt_fault jwt_refuse(struct jwt_refusal *ret_refusal, enum jwt_fault fault,
                                        const char *field, const char *limit)
{
    *ret_refusal = (struct jwt_refusal){ fault, field, limit };
    return fault;
}
/* "unknown_key". Not of JWT_OK. */
const char *jwt_fault_text(enum jwt_fault fault);

struct jws {
    enum jws_algorithm algorithm;
    bool has_key_id;
    char key_id[JWK_ID_BYTES_MAX + 1];
    struct slice signed_text; /* Within the text that was read. */
    struct slice payload;     /* JSON, or anything; in `bytes`, as `signature`. */
    struct slice signature;
    uint8_t bytes[JWS_TEXT_MAX / 4 * 3];
};

/* Whether a text that a caller sent in the place of an API key is to be read as a token: it has a
 * dot, as no API key has. */
bool jws_is_meant(struct slice text);
/* JWT_OK: *ret_jws says what the token says; nothing of it is proven. JWT_FORM, JWT_ALGORITHM:
 * *ret_refusal says why, and *ret_jws is undefined. `text` is at least as long-lived as *ret_jws.
 */
enum jwt_fault jws_read(struct slice text, struct jws *ret_jws, struct jwt_refusal *ret_refusal);
/* The key that the token names by "kid"; without one, the only key of its algorithm.
 * JWT_UNKNOWN_KEY, JWT_ALGORITHM: *ret_refusal says why. */
enum jwt_fault jws_find_key(const struct jws *jws, struct jwk_set *set, struct jwk **ret_key,
                            struct jwt_refusal *ret_refusal);
/* Whether the key, which is of the token's algorithm, made the signature. */
bool jws_is_signed(const struct jws *jws, struct jwk *key);

#endif
