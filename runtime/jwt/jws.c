#include "runtime/jwt/jws.h"

#include <string.h>

#include "runtime/base/base64.h"
#include "runtime/base/check.h"
#include "runtime/jwt/jwt_json.h"

#define PARTS 3u

static const char *const fault_texts[] = {
#define JWT_FAULT_TEXT(enumerator, text, meaning) [JWT_##enumerator] = (text),
    JWT_FAULTS(JWT_FAULT_TEXT)
#undef JWT_FAULT_TEXT
};

const char *jwt_fault_text(enum jwt_fault fault)
{
    CHECK(fault > JWT_OK && fault < JWT_FAULT_COUNT);
    return fault_texts[fault];
}

bool jws_is_meant(struct slice text)
{
    return text.size > 0 && memchr(text.data, '.', text.size) != NULL;
}

/* False: it has not PARTS parts, none of them empty. */
static bool split(struct slice text, struct slice parts[PARTS])
{
    size_t from = 0;
    unsigned found = 0;

    for (size_t i = 0; i <= text.size; i++) {
        if (i < text.size && text.data[i] != '.')
            continue;
        if (found == PARTS || i == from)
            return false;
        parts[found++] = (struct slice){ text.data + from, i - from };
        from = i + 1;
    }
    return found == PARTS;
}

static enum jwt_fault read_header(const json_t *header, struct jws *jws,
                                  struct jwt_refusal *ret_refusal)
{
    struct slice id = jwt_json_text(header, "kid");

    if (jwt_json_has(header, "crit")) /* RFC 7515 section 4.1.11: none is understood here. */
        return jwt_refuse(ret_refusal, JWT_FORM, "crit", "no critical extension");
    jws->algorithm = jws_algorithm_find(jwt_json_text(header, "alg"));
    if (jws->algorithm == JWS_NONE)
        return jwt_refuse(ret_refusal, JWT_ALGORITHM, "alg", "HS256, RS256 or ES256");
    jws->has_key_id = jwt_json_has(header, "kid");
    if (jws->has_key_id && (id.size == 0 || id.size > JWK_ID_BYTES_MAX))
        return jwt_refuse(ret_refusal, JWT_FORM, "kid", "a text of 1 to 128 bytes");
    memcpy(jws->key_id, id.size > 0 ? (const void *)id.data : "", id.size);
    jws->key_id[id.size] = 0;
    return JWT_OK;
}

static enum jwt_fault read_header_text(struct slice text, struct jws *jws,
                                       struct jwt_refusal *ret_refusal)
{
    size_t size;
    json_t *header;
    enum jwt_fault fault;

    if (text.size > JWS_HEADER_TEXT_MAX)
        return jwt_refuse(ret_refusal, JWT_FORM, "header", "at most 2048 characters");
    if (!base64_decode_url(text, jws->bytes, &size))
        return jwt_refuse(ret_refusal, JWT_FORM, "header", "base64url without padding");
    header = jwt_json_read((struct slice){ jws->bytes, size });
    if (header == NULL)
        return jwt_refuse(ret_refusal, JWT_FORM, "header",
                          "a JSON object, 8 deep at most, that names no member twice");
    fault = read_header(header, jws, ret_refusal);
    json_decref(header);
    return fault;
}

/* Decoded behind what is there; *at moves on. */
static bool decode(struct slice text, struct jws *jws, size_t *at, struct slice *ret_bytes)
{
    size_t size;

    if (*at + base64_size_max(text.size) > sizeof jws->bytes ||
        !base64_decode_url(text, jws->bytes + *at, &size))
        return false;
    *ret_bytes = (struct slice){ jws->bytes + *at, size };
    *at += size;
    return true;
}

enum jwt_fault jws_read(struct slice text, struct jws *ret_jws, struct jwt_refusal *ret_refusal)
{
    struct slice parts[PARTS];
    enum jwt_fault fault;
    size_t at = 0;

    if (text.size > JWS_TEXT_MAX)
        return jwt_refuse(ret_refusal, JWT_FORM, "token", "at most 8192 bytes");
    if (!split(text, parts))
        return jwt_refuse(ret_refusal, JWT_FORM, "token", "header.claims.signature, none empty");
    fault = read_header_text(parts[0], ret_jws, ret_refusal);
    if (fault != JWT_OK)
        return fault;
    if (!decode(parts[1], ret_jws, &at, &ret_jws->payload))
        return jwt_refuse(ret_refusal, JWT_FORM, "claims", "base64url without padding");
    if (!decode(parts[2], ret_jws, &at, &ret_jws->signature))
        return jwt_refuse(ret_refusal, JWT_FORM, "signature", "base64url without padding");
    ret_jws->signed_text =
        (struct slice){ text.data, (size_t)(parts[1].data + parts[1].size - text.data) };
    return JWT_OK;
}

static enum jwt_fault find_by_id(const struct jws *jws, struct jwk_set *set, struct jwk **ret_key,
                                 struct jwt_refusal *ret_refusal)
{
    for (uint32_t i = 0; i < set->count; i++) {
        struct jwk *key = &set->keys[i];
        if (key->id[0] == 0 || strcmp(key->id, jws->key_id) != 0)
            continue;
        if (key->algorithm != jws->algorithm)
            return jwt_refuse(ret_refusal, JWT_ALGORITHM, "alg",
                              "the algorithm of the key named by kid");
        *ret_key = key;
        return JWT_OK;
    }
    return jwt_refuse(ret_refusal, JWT_UNKNOWN_KEY, "kid", "a key of the configured set");
}

enum jwt_fault jws_find_key(const struct jws *jws, struct jwk_set *set, struct jwk **ret_key,
                            struct jwt_refusal *ret_refusal)
{
    struct jwk *only = NULL;

    if (jws->has_key_id)
        return find_by_id(jws, set, ret_key, ret_refusal);
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->keys[i].algorithm != jws->algorithm)
            continue;
        if (only != NULL)
            return jwt_refuse(ret_refusal, JWT_UNKNOWN_KEY, "kid",
                              "a name, since several keys fit");
        only = &set->keys[i];
    }
    if (only == NULL)
        return jwt_refuse(ret_refusal, JWT_ALGORITHM, "alg", "the algorithm of a key of the set");
    *ret_key = only;
    return JWT_OK;
}

bool jws_is_signed(const struct jws *jws, struct jwk *key)
{
    uint8_t hash[SHA256_BYTES];

    CHECK(key->algorithm == jws->algorithm && jws->algorithm != JWS_NONE);
    if (key->algorithm == JWS_HS256) {
        hmac_sign(&key->secret, jws->signed_text, hash);
        return jws->signature.size == HMAC_BYTES &&
               hmac_equal(hash, jws->signature.data, HMAC_BYTES);
    }
    sha256_pair(jws->signed_text, (struct slice){ 0 }, hash);
    return signature_is_valid(key->public_key, hash, jws->signature);
}
