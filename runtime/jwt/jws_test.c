#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/base64.h"
#include "runtime/base/check.h"
#include "runtime/jwt/jws.h"
#include "runtime/jwt/jwt_vectors.h"

static void keys_of(const char *list, struct jwk_set *ret_set)
{
    struct buf json = { 0 };
    struct jwk_why why;

    buf_printf(&json, "{\"keys\":[%s]}", list);
    CHECK(jwk_set_read(buf_slice(&json), true, ret_set, &why) == ERR_OK);
    buf_deinit(&json);
}

/* Of a text on the heap of its own size, so that reading past its end is seen. */
static enum jwt_fault verify(struct jwk_set *set, struct slice text,
                             struct jwt_refusal *ret_refusal)
{
    static struct jws jws;
    uint8_t *copy = malloc(text.size + (text.size == 0));
    struct jwk *key = NULL;
    enum jwt_fault fault;

    CHECK(copy != NULL);
    if (text.size > 0)
        memcpy(copy, text.data, text.size);
    *ret_refusal = (struct jwt_refusal){ JWT_OK, "", "" };
    fault = jws_read((struct slice){ copy, text.size }, &jws, ret_refusal);
    if (fault == JWT_OK)
        fault = jws_find_key(&jws, set, &key, ret_refusal);
    if (fault == JWT_OK && !jws_is_signed(&jws, key))
        fault = JWT_SIGNATURE;
    free(copy);
    return fault;
}

static enum jwt_fault verify_text(const char *keys, const char *text)
{
    struct jwk_set set;
    struct jwt_refusal refusal;

    keys_of(keys, &set);
    enum jwt_fault fault = verify(&set, slice_from_text(text), &refusal);
    jwk_set_deinit(&set);
    return fault;
}

/* A token with that header, which is signed with the secret of the vectors. */
static void make(const char *header, const char *payload, struct buf *out)
{
    struct jwk_set set;
    uint8_t mac[HMAC_BYTES];

    keys_of(PLAYER_SECRET, &set);
    buf_clear(out);
    base64_encode_url(slice_from_text(header), out);
    buf_put_u8(out, '.');
    base64_encode_url(slice_from_text(payload), out);
    hmac_sign(&set.keys[0].secret, buf_slice(out), mac);
    buf_put_u8(out, '.');
    base64_encode_url((struct slice){ mac, sizeof mac }, out);
    jwk_set_deinit(&set);
}

static void assert_made(const char *header, enum jwt_fault expected, const char *field)
{
    struct jwt_refusal refusal;
    struct jwk_set set;
    struct buf text = { 0 };

    keys_of(PLAYER_SECRET "," PLAYER_RSA "," PLAYER_EC, &set);
    make(header, "{}", &text);
    assert_int_equal(verify(&set, buf_slice(&text), &refusal), expected);
    if (expected != JWT_OK && expected != JWT_SIGNATURE) {
        assert_int_equal(refusal.fault, expected);
        assert_string_equal(refusal.field, field);
        assert_true(refusal.limit[0] != 0);
    }
    jwk_set_deinit(&set);
    buf_deinit(&text);
}

static void the_tokens_of_the_rfc_are_signed_by_its_keys(void **state)
{
    static const char *const keys[] = { RFC_SECRET, RFC_RSA, RFC_EC };
    static const char *const tokens[] = { RFC_HS256, RFC_RS256, RFC_ES256 };

    (void)state;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(verify_text(keys[i], tokens[i]), JWT_OK);
    assert_int_equal(verify_text(RFC_SECRET "," RFC_RSA "," RFC_EC, RFC_RS256), JWT_OK);
    assert_int_equal(verify_text(PLAYER_RSA, RFC_RS256), JWT_SIGNATURE);
    assert_int_equal(verify_text(PLAYER_EC, RFC_ES256), JWT_SIGNATURE);
}

/* Every other byte in the place of each byte of a token. */
static void assert_no_byte_can_change(const char *keys, const char *token, bool all)
{
    size_t size = strlen(token);
    char *text = strdup(token);
    struct jwt_refusal refusal;
    struct jwk_set set;

    CHECK(text != NULL);
    keys_of(keys, &set);
    for (size_t i = 0; i < size; i++) {
        for (unsigned c = 0; c < 256; c += all ? 1 : 1 + (unsigned)(i * 7 + c) % 61) {
            text[i] = (char)c;
            enum jwt_fault fault = verify(&set, (struct slice){ (uint8_t *)text, size }, &refusal);
            assert_int_equal(fault == JWT_OK, text[i] == token[i]);
        }
        text[i] = token[i];
    }
    for (size_t i = 0; i < size; i++)
        assert_int_not_equal(verify(&set, (struct slice){ (uint8_t *)text, i }, &refusal), JWT_OK);
    jwk_set_deinit(&set);
    free(text);
}

static void no_byte_of_a_token_can_change(void **state)
{
    (void)state;
    assert_no_byte_can_change(PLAYER_SECRET, PLAYER_HS256, true);
    assert_no_byte_can_change(PLAYER_RSA, PLAYER_RS256, false);
    assert_no_byte_can_change(PLAYER_EC, PLAYER_ES256, false);
}

static void a_token_has_three_parts_in_strict_base64url(void **state)
{
    static const char *const broken[] = {
        "",   ".",    "..",     "...",     "a.b.c",    PLAYER_HS256 ".", PLAYER_HS256 "=",
        "a.", ".a.b", "a..b",   "a.b.",    "A.B.C.D",  " " PLAYER_HS256, PLAYER_HS256 "\n",
        "hf", "e30",  "e30.e3", "e30.e30", "e30.e30.", "W10.e30.AAAA",   "bnVsbA.e30.AAAA",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(broken); i++)
        assert_int_equal(verify_text(PLAYER_SECRET, broken[i]), JWT_FORM);
}

static void the_algorithm_is_the_keys_and_never_the_tokens(void **state)
{
    (void)state;
    assert_made("{\"alg\":\"HS256\",\"kid\":\"mac-1\"}", JWT_OK, NULL);
    assert_made("{\"alg\":\"HS256\"}", JWT_OK, NULL);
    assert_made("{\"alg\":\"none\"}", JWT_ALGORITHM, "alg");
    assert_made("{\"alg\":\"None\",\"kid\":\"mac-1\"}", JWT_ALGORITHM, "alg");
    assert_made("{\"alg\":\"hs256\"}", JWT_ALGORITHM, "alg");
    assert_made("{\"alg\":\"HS512\"}", JWT_ALGORITHM, "alg");
    assert_made("{\"alg\":\"\"}", JWT_ALGORITHM, "alg");
    assert_made("{\"alg\":[\"HS256\"]}", JWT_ALGORITHM, "alg");
    assert_made("{}", JWT_ALGORITHM, "alg");
    /* A MAC by a public key, which everybody has. */
    assert_made("{\"alg\":\"HS256\",\"kid\":\"rsa-1\"}", JWT_ALGORITHM, "alg");
    assert_made("{\"alg\":\"HS256\",\"kid\":\"ec-1\"}", JWT_ALGORITHM, "alg");
    assert_made("{\"alg\":\"RS256\",\"kid\":\"ec-1\"}", JWT_ALGORITHM, "alg");
    assert_made("{\"alg\":\"RS256\",\"kid\":\"rsa-1\"}", JWT_SIGNATURE, NULL);
    assert_made("{\"alg\":\"ES256\",\"kid\":\"ec-1\"}", JWT_SIGNATURE, NULL);
}

/* The text of a public key as the secret of a MAC: the best known attack on tokens. */
static void a_mac_by_the_text_of_a_public_key_is_refused(void **state)
{
    struct jwk_set set;
    struct jwt_refusal refusal;
    struct hmac_key mac_key;
    uint8_t mac[HMAC_BYTES];
    struct buf text = { 0 };

    (void)state;
    hmac_key_init(&mac_key, SLICE_LITERAL(PLAYER_RSA));
    for (unsigned named = 0; named < 2; named++) {
        keys_of(PLAYER_RSA, &set);
        buf_clear(&text);
        base64_encode_url(named ? SLICE_LITERAL("{\"alg\":\"HS256\",\"kid\":\"rsa-1\"}")
                                : SLICE_LITERAL("{\"alg\":\"HS256\"}"),
                          &text);
        buf_append(&text, ".e30", 4);
        hmac_sign(&mac_key, buf_slice(&text), mac);
        buf_put_u8(&text, '.');
        base64_encode_url((struct slice){ mac, sizeof mac }, &text);
        assert_int_equal(verify(&set, buf_slice(&text), &refusal), JWT_ALGORITHM);
        jwk_set_deinit(&set);
    }
    buf_deinit(&text);
}

static void a_header_is_strict(void **state)
{
    (void)state;
    assert_made("{\"alg\":\"HS256\",\"crit\":[\"exp\"],\"exp\":1}", JWT_FORM, "crit");
    assert_made("{\"alg\":\"HS256\",\"crit\":[]}", JWT_FORM, "crit");
    assert_made("{\"alg\":\"HS256\",\"kid\":\"\"}", JWT_FORM, "kid");
    assert_made("{\"alg\":\"HS256\",\"kid\":7}", JWT_FORM, "kid");
    assert_made("{\"alg\":\"HS256\",\"kid\":\"another\"}", JWT_UNKNOWN_KEY, "kid");
    assert_made("{\"alg\":\"HS256\",\"alg\":\"HS256\"}", JWT_FORM, "header");
    assert_made("{\"alg\":\"HS256\"} ", JWT_OK, NULL);
    assert_made("{\"alg\":\"HS256\"}{}", JWT_FORM, "header");
    assert_made("[\"HS256\"]", JWT_FORM, "header");
    assert_made("\"HS256\"", JWT_FORM, "header");
    assert_made("{\"alg\":\"HS256\",\"x\":[[[[[[[1]]]]]]]}", JWT_OK, NULL);
    assert_made("{\"alg\":\"HS256\",\"x\":[[[[[[[[1]]]]]]]]}", JWT_FORM, "header");
    assert_made("{\"alg\":\"HS256\",\"x\":\"[[[[[[[[[[[\\\"[[[\"}", JWT_OK, NULL);
    /* A key in a token is the caller's own. */
    assert_made("{\"alg\":\"HS256\",\"kid\":\"mine\",\"jwk\":" PLAYER_SECRET "}", JWT_UNKNOWN_KEY,
                "kid");
}

static void without_a_kid_one_key_alone_may_fit(void **state)
{
    (void)state;
    assert_int_equal(verify_text(RFC_RSA "," PLAYER_EC, RFC_RS256), JWT_OK);
    assert_int_equal(verify_text(RFC_RSA "," PLAYER_RSA, RFC_RS256), JWT_UNKNOWN_KEY);
    assert_int_equal(verify_text(RFC_RSA "," PLAYER_RSA, PLAYER_RS256), JWT_OK);
    assert_int_equal(verify_text(RFC_RSA, PLAYER_RS256), JWT_UNKNOWN_KEY);
    assert_int_equal(verify_text("", RFC_RS256), JWT_ALGORITHM);
    assert_int_equal(verify_text("", PLAYER_RS256), JWT_UNKNOWN_KEY);
}

static void tokens_are_bounded(void **state)
{
    struct buf text = { 0 }, payload = { 0 };
    struct jwt_refusal refusal;
    struct jwk_set set;

    (void)state;
    keys_of(PLAYER_SECRET, &set);
    for (size_t size = 6000; size < 6300; size++) {
        buf_clear(&payload);
        buf_printf(&payload, "%*s", (int)size, "");
        buf_put_u8(&payload, 0);
        make("{\"alg\":\"HS256\"}", (const char *)payload.data, &text);
        assert_int_equal(verify(&set, buf_slice(&text), &refusal),
                         text.size <= JWS_TEXT_MAX ? JWT_OK : JWT_FORM);
    }
    assert_true(text.size > JWS_TEXT_MAX);
    buf_clear(&payload);
    buf_printf(&payload, "{\"alg\":\"HS256\"%*s}", 1600, "");
    buf_put_u8(&payload, 0);
    make((const char *)payload.data, "{}", &text);
    assert_int_equal(verify(&set, buf_slice(&text), &refusal), JWT_FORM);
    assert_string_equal(refusal.field, "header");
    jwk_set_deinit(&set);
    buf_deinit(&text);
    buf_deinit(&payload);
}

static void a_token_has_a_dot_and_an_api_key_has_none(void **state)
{
    (void)state;
    assert_true(jws_is_meant(SLICE_LITERAL(PLAYER_HS256)));
    assert_true(jws_is_meant(SLICE_LITERAL("a.b")));
    assert_false(jws_is_meant(SLICE_LITERAL("")));
    assert_false(jws_is_meant(SLICE_LITERAL("hf_0123456789abcdef")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tokens_of_the_rfc_are_signed_by_its_keys),
        cmocka_unit_test(no_byte_of_a_token_can_change),
        cmocka_unit_test(a_token_has_three_parts_in_strict_base64url),
        cmocka_unit_test(the_algorithm_is_the_keys_and_never_the_tokens),
        cmocka_unit_test(a_mac_by_the_text_of_a_public_key_is_refused),
        cmocka_unit_test(a_header_is_strict),
        cmocka_unit_test(without_a_kid_one_key_alone_may_fit),
        cmocka_unit_test(tokens_are_bounded),
        cmocka_unit_test(a_token_has_a_dot_and_an_api_key_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
