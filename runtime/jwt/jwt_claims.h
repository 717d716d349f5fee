/*
 * jwt_claims: what a token claims (RFC 7519 section 4.1), as far as it decides who calls. Other
 * claims are not looked at. All of it is cheaper than a signature, so a caller checks it first and
 * the signature last. Pure: the time is told.
 */
#ifndef RUNTIME_JWT_JWT_CLAIMS_H
#define RUNTIME_JWT_JWT_CLAIMS_H

#include "runtime/jwt/jws.h"

#define JWT_SUBJECT_BYTES_MAX 100u /* As a player's id: idl/limit.h. */
#define JWT_SKEW_MS_MAX       300000u

/* What is asked of every token. */
struct jwt_rules {
    const char *audience; /* One of "aud". Not empty. */
    const char *issuer;   /* "iss"; empty: any. */
    uint64_t skew_ms;     /* How far clocks may differ; JWT_SKEW_MS_MAX at most. */
};

struct jwt_claims {
    char subject[JWT_SUBJECT_BYTES_MAX + 1]; /* 1 to 100 bytes of UTF-8 without controls. */
    uint64_t expires_ms;                     /* Unix time, as the next. */
    uint64_t not_before_ms;                  /* The later one of "nbf" and "iat"; 0: neither. */
};

/* Another fault than JWT_OK: *ret_refusal says which claim and why; *ret_claims is undefined. Times
 * are only read. */
enum jwt_fault jwt_claims_read(struct slice json, const struct jwt_rules *rules,
                               struct jwt_claims *ret_claims, struct jwt_refusal *ret_refusal);
/* JWT_EXPIRED from "exp" and the skew on, JWT_NOT_YET before "nbf" or "iat" less the skew. */
enum jwt_fault jwt_claims_check_time(const struct jwt_claims *claims, const struct jwt_rules *rules,
                                     uint64_t wall_ms, struct jwt_refusal *ret_refusal);
#endif
