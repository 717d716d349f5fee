#include "runtime/jwt/jwk_set.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/base64.h"
#include "runtime/base/check.h"
#include "runtime/jwt/jwt_json.h"

#define NUMBER_TEXT_MAX 2048u /* More characters than any number or secret of a key has. */
#define NUMBER_MAX      (NUMBER_TEXT_MAX / 4 * 3)

static const char *const algorithm_names[] = {
    [JWS_NONE] = "none",
    [JWS_HS256] = "HS256",
    [JWS_RS256] = "RS256",
    [JWS_ES256] = "ES256",
};

enum jws_algorithm jws_algorithm_find(struct slice name)
{
    for (enum jws_algorithm i = JWS_HS256; i < ARRAY_SIZE(algorithm_names); i++) {
        if (slice_equal(name, slice_from_text(algorithm_names[i])))
            return i;
    }
    return JWS_NONE;
}

/* A number of a key, or its secret. */
struct number {
    uint8_t bytes[NUMBER_MAX];
    size_t size;
};

static bool read_number(const json_t *key, const char *name, struct number *ret_number)
{
    struct slice text = jwt_json_text(key, name);

    return text.size > 0 && text.size <= NUMBER_TEXT_MAX &&
           base64_decode_url(text, ret_number->bytes, &ret_number->size);
}

static struct slice number_slice(const struct number *number)
{
    return (struct slice){ number->bytes, number->size };
}

static const char *read_secret(const json_t *key, struct jwk *jwk)
{
    struct number secret;
    const char *why = NULL;

    if (!read_number(key, "k", &secret))
        return "k is not base64url";
    if (secret.size < JWK_SECRET_BYTES_MIN || secret.size > JWK_SECRET_BYTES_MAX)
        why = "a secret has 32 to 1024 bytes";
    else
        hmac_key_init(&jwk->secret, number_slice(&secret));
    explicit_bzero(&secret, sizeof secret);
    return why;
}

static const char *read_rsa(const json_t *key, struct jwk *jwk)
{
    struct number modulus, exponent;
    const char *why = NULL;

    if (!read_number(key, "n", &modulus) || !read_number(key, "e", &exponent))
        return "n or e is not base64url";
    if (signature_key_new_rsa(number_slice(&modulus), number_slice(&exponent), &jwk->public_key,
                              &why) != ERR_OK)
        return why;
    return NULL;
}

static const char *read_curve(const json_t *key, struct jwk *jwk)
{
    struct number x, y;
    const char *why = NULL;

    if (!slice_equal(jwt_json_text(key, "crv"), SLICE_LITERAL("P-256")))
        return "crv is not P-256";
    if (!read_number(key, "x", &x) || !read_number(key, "y", &y))
        return "x or y is not base64url";
    if (signature_key_new_p256(number_slice(&x), number_slice(&y), &jwk->public_key, &why) !=
        ERR_OK)
        return why;
    return NULL;
}

/* RFC 7517 sections 4.2 and 4.3: a key for something else must not check signatures. */
static bool is_for_signatures(const json_t *key)
{
    const json_t *operations = json_object_get(key, "key_ops");
    size_t i;
    const json_t *one;

    if (jwt_json_has(key, "use") && !slice_equal(jwt_json_text(key, "use"), SLICE_LITERAL("sig")))
        return false;
    if (operations == NULL)
        return true;
    json_array_foreach(operations, i, one)
    {
        if (json_is_string(one) && strcmp(json_string_value(one), "verify") == 0)
            return true;
    }
    return false;
}

static const char *read_id(const json_t *key, struct jwk *jwk)
{
    struct slice id = jwt_json_text(key, "kid");

    if (!jwt_json_has(key, "kid"))
        return NULL;
    if (id.size == 0 || id.size > JWK_ID_BYTES_MAX)
        return "kid is no text of 1 to 128 bytes";
    memcpy(jwk->id, id.data, id.size);
    jwk->id[id.size] = 0;
    return NULL;
}

static const char *read_kind(const json_t *key, bool secrets, struct jwk *jwk)
{
    struct slice type = jwt_json_text(key, "kty");

    if (slice_equal(type, SLICE_LITERAL("RSA")))
        jwk->algorithm = JWS_RS256;
    else if (slice_equal(type, SLICE_LITERAL("EC")))
        jwk->algorithm = JWS_ES256;
    else if (slice_equal(type, SLICE_LITERAL("oct")))
        jwk->algorithm = JWS_HS256;
    else
        return "kty is none of RSA, EC and oct";
    if (jwk->algorithm == JWS_HS256 && !secrets)
        return "a shared secret comes from a file alone";
    if (jwt_json_has(key, "alg") && jws_algorithm_find(jwt_json_text(key, "alg")) != jwk->algorithm)
        return "alg is not the one of HS256, RS256 and ES256 that its kty is for";
    return NULL;
}

/* NULL: *jwk is a key. */
static const char *read_key(const json_t *key, bool secrets, struct jwk *jwk)
{
    const char *why;

    if (!json_is_object(key))
        return "it is no object";
    why = read_kind(key, secrets, jwk);
    if (why == NULL)
        why = read_id(key, jwk);
    if (why == NULL && !is_for_signatures(key))
        why = "use or key_ops says that it checks no signatures";
    if (why != NULL)
        return why;
    if (jwk->algorithm == JWS_HS256)
        return read_secret(key, jwk);
    return jwk->algorithm == JWS_RS256 ? read_rsa(key, jwk) : read_curve(key, jwk);
}

static void jwk_deinit(struct jwk *jwk)
{
    signature_key_free(jwk->public_key);
    explicit_bzero(jwk, sizeof *jwk);
}

static bool id_is_taken(const struct jwk_set *set, const struct jwk *jwk)
{
    for (uint32_t i = 0; i < set->count; i++) {
        if (jwk->id[0] != 0 && strcmp(set->keys[i].id, jwk->id) == 0)
            return true;
    }
    return false;
}

static void add(const json_t *key, size_t place, bool secrets, struct jwk_set *set,
                struct jwk_why *why)
{
    struct jwk jwk = { .algorithm = JWS_NONE };
    const char *fault = read_key(key, secrets, &jwk);

    if (fault == NULL && id_is_taken(set, &jwk))
        fault = "another key has its kid";
    if (fault == NULL) {
        CHECK(set->count < JWK_SET_KEYS_MAX);
        set->keys[set->count++] = jwk;
        return;
    }
    jwk_deinit(&jwk);
    if (set->unfit++ == 0)
        snprintf(why->text, sizeof why->text, "keys[%zu]: %s", place, fault);
}

static err refuse(struct jwk_why *why, err e, const char *text)
{
    snprintf(why->text, sizeof why->text, "%s", text);
    return e;
}

err jwk_set_read(struct slice json, bool secrets, struct jwk_set *ret_set, struct jwk_why *ret_why)
{
    json_t *document, *keys;
    size_t place;
    const json_t *key;

    ret_why->text[0] = 0;
    if (json.size > JWK_SET_BYTES_MAX)
        return refuse(ret_why, ERR_TOO_LARGE, "it has more than 65536 bytes");
    document = jwt_json_read(json);
    keys = json_object_get(document, "keys");
    if (!json_is_array(keys) || json_array_size(keys) > JWK_SET_KEYS_MAX) {
        refuse(ret_why, ERR_INVALID,
               document == NULL       ? "it is no JSON object, or names a member twice"
               : !json_is_array(keys) ? "it has no list \"keys\""
                                      : "it has more than 32 keys");
        json_decref(document);
        return ERR_INVALID;
    }
    *ret_set = (struct jwk_set){ .count = 0 };
    json_array_foreach(keys, place, key) add(key, place, secrets, ret_set, ret_why);
    json_decref(document);
    return ERR_OK;
}

void jwk_set_deinit(struct jwk_set *set)
{
    for (uint32_t i = 0; i < set->count; i++)
        jwk_deinit(&set->keys[i]);
    set->count = 0;
    set->unfit = 0;
}
