#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/jwt/jwk_set.h"
#include "runtime/jwt/jwt_vectors.h"

static struct jwk_set set;
static struct jwk_why why;

static err read_text(const char *json, bool secrets)
{
    jwk_set_deinit(&set);
    return jwk_set_read(slice_from_text(json), secrets, &set, &why);
}

static int teardown(void **state)
{
    (void)state;
    jwk_set_deinit(&set);
    return 0;
}

/* One key that is left out, and the reason. */
static void assert_unfit(const char *key, const char *expected)
{
    struct buf json = { 0 };

    buf_printf(&json, "{\"keys\":[%s]}", key);
    buf_put_u8(&json, 0);
    assert_int_equal(read_text((const char *)json.data, true), ERR_OK);
    assert_int_equal(set.count, 0);
    assert_int_equal(set.unfit, 1);
    assert_non_null(strstr(why.text, "keys[0]: "));
    assert_string_equal(why.text + strlen("keys[0]: "), expected);
    buf_deinit(&json);
}

static void a_set_has_keys_of_three_kinds(void **state)
{
    (void)state;
    assert_int_equal(read_text("{\"keys\":[" PLAYER_SECRET "," PLAYER_RSA "," PLAYER_EC "]}", true),
                     ERR_OK);
    assert_int_equal(set.count, 3);
    assert_int_equal(set.unfit, 0);
    assert_string_equal(why.text, "");
    assert_string_equal(set.keys[0].id, "mac-1");
    assert_int_equal(set.keys[0].algorithm, JWS_HS256);
    assert_int_equal(set.keys[1].algorithm, JWS_RS256);
    assert_int_equal(set.keys[2].algorithm, JWS_ES256);
    assert_int_equal(read_text("{\"keys\":[]}", true), ERR_OK);
    assert_int_equal(set.count, 0);
}

static void what_is_no_set_is_refused_whole(void **state)
{
    static const char *const broken[] = {
        "",
        "null",
        "[]",
        "{}",
        "{\"keys\":{}}",
        "{\"keys\":[],\"keys\":[]}",
        "{\"keys\":[}",
        "{\"keys\":[]} x",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
        assert_int_equal(read_text(broken[i], true), ERR_INVALID);
        assert_true(why.text[0] != 0);
    }
}

static void a_shared_secret_is_taken_from_a_file_alone(void **state)
{
    (void)state;
    assert_int_equal(read_text("{\"keys\":[" PLAYER_SECRET "," PLAYER_EC "]}", false), ERR_OK);
    assert_int_equal(set.count, 1);
    assert_int_equal(set.keys[0].algorithm, JWS_ES256);
    assert_string_equal(why.text, "keys[0]: a shared secret comes from a file alone");
}

static void keys_that_are_weak_or_for_something_else_are_left_out(void **state)
{
    (void)state;
    assert_unfit(WEAK_RSA, "an RSA modulus has 2048 to 4096 bits");
    assert_unfit("{\"kty\":\"oct\",\"k\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}",
                 "a secret has 32 to 1024 bytes");
    assert_unfit("{\"kty\":\"oct\",\"k\":\"AA==\"}", "k is not base64url");
    assert_unfit("{\"kty\":\"oct\"}", "k is not base64url");
    assert_unfit("{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AAAA\"}",
                 "kty is none of RSA, EC and oct");
    assert_unfit("{}", "kty is none of RSA, EC and oct");
    assert_unfit("7", "it is no object");
    assert_unfit("{\"kty\":\"EC\",\"crv\":\"P-384\"}", "crv is not P-256");
    assert_unfit("{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AA\",\"y\":\"AA\"}",
                 "a coordinate on P-256 has 32 bytes");
    assert_unfit("{\"kty\":\"RSA\",\"alg\":\"RS512\"}",
                 "alg is not the one of HS256, RS256 and ES256 that its kty is for");
    assert_unfit("{\"kty\":\"RSA\",\"alg\":\"HS256\"}",
                 "alg is not the one of HS256, RS256 and ES256 that its kty is for");
    assert_unfit("{\"kty\":\"RSA\",\"use\":\"enc\"}",
                 "use or key_ops says that it checks no signatures");
    assert_unfit("{\"kty\":\"RSA\",\"key_ops\":[\"encrypt\"]}",
                 "use or key_ops says that it checks no signatures");
    assert_unfit("{\"kty\":\"RSA\",\"kid\":7}", "kid is no text of 1 to 128 bytes");
    assert_unfit("{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"A+AB\"}", "n or e is not base64url");
}

static void two_keys_of_one_name_are_one(void **state)
{
    (void)state;
    assert_int_equal(read_text("{\"keys\":[" PLAYER_RSA "," PLAYER_RSA "]}", true), ERR_OK);
    assert_int_equal(set.count, 1);
    assert_string_equal(why.text, "keys[1]: another key has its kid");
    assert_int_equal(read_text("{\"keys\":[" RFC_RSA "," RFC_RSA "]}", true), ERR_OK);
    assert_int_equal(set.count, 2); /* Without a name: no token can mean one of them. */
}

static void a_set_is_bounded(void **state)
{
    struct buf json = { 0 };

    (void)state;
    for (unsigned count = JWK_SET_KEYS_MAX; count <= JWK_SET_KEYS_MAX + 1; count++) {
        buf_clear(&json);
        buf_printf(&json, "{\"keys\":[" RFC_EC);
        for (unsigned i = 1; i < count; i++)
            buf_printf(&json, "," RFC_EC);
        buf_printf(&json, "]}");
        buf_put_u8(&json, 0);
        assert_int_equal(read_text((const char *)json.data, true),
                         count <= JWK_SET_KEYS_MAX ? ERR_OK : ERR_INVALID);
    }
    assert_string_equal(why.text, "it has more than 32 keys");
    buf_clear(&json);
    buf_printf(&json, "{\"keys\":[]%*s}", (int)JWK_SET_BYTES_MAX, "");
    buf_put_u8(&json, 0);
    assert_int_equal(read_text((const char *)json.data, true), ERR_TOO_LARGE);
    buf_deinit(&json);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_set_has_keys_of_three_kinds),
        TEST(what_is_no_set_is_refused_whole),
        TEST(a_shared_secret_is_taken_from_a_file_alone),
        TEST(keys_that_are_weak_or_for_something_else_are_left_out),
        TEST(two_keys_of_one_name_are_one),
        TEST(a_set_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
