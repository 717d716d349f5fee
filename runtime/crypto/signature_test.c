#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/base64.h"
#include "runtime/base/check.h"
#include "runtime/crypto/signature.h"

/* RFC 7515, appendix A.3. */
#define POINT_X "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"
#define POINT_Y "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"
#define SIGNATURE                                                                                  \
    "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
#define TEXT                                                                                       \
    "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlL"   \
    "mNvbS9pc19yb290Ijp0cnVlfQ"

static struct slice bytes_of(const char *text, uint8_t *room)
{
    size_t size;

    CHECK(base64_decode_url(slice_from_text(text), room, &size));
    return (struct slice){ room, size };
}

static struct signature_key *key_of_the_rfc(void)
{
    uint8_t x[64], y[64];
    struct signature_key *key = NULL;
    const char *why;

    CHECK(signature_key_new_p256(bytes_of(POINT_X, x), bytes_of(POINT_Y, y), &key, &why) == ERR_OK);
    return key;
}

static void a_signature_on_p256_is_checked_bit_by_bit(void **state)
{
    struct signature_key *key = key_of_the_rfc();
    uint8_t hash[SHA256_BYTES], room[128];
    struct slice signature = bytes_of(SIGNATURE, room);

    (void)state;
    sha256_pair(SLICE_LITERAL(TEXT), (struct slice){ 0 }, hash);
    assert_true(signature_is_valid(key, hash, signature));
    for (size_t i = 0; i < signature.size; i++) {
        room[i] ^= 1;
        assert_false(signature_is_valid(key, hash, signature));
        room[i] ^= 1;
    }
    for (size_t i = 0; i < sizeof hash; i++) {
        hash[i] ^= 0x80;
        assert_false(signature_is_valid(key, hash, signature));
        hash[i] ^= 0x80;
    }
    for (size_t size = 0; size < signature.size; size++)
        assert_false(signature_is_valid(key, hash, (struct slice){ room, size }));
    signature_key_free(key);
}

/* CVE-2022-21449: r and s of zero must not pass; nor those at or past the order of the curve. */
static void numbers_out_of_range_are_no_signature(void **state)
{
    struct signature_key *key = key_of_the_rfc();
    uint8_t hash[SHA256_BYTES] = { 0 }, signature[2 * SIGNATURE_P256_BYTES];

    (void)state;
    for (unsigned r = 0; r < 3; r++) {
        for (unsigned s = 0; s < 3; s++) {
            memset(signature, r == 2 ? 0xff : 0, SIGNATURE_P256_BYTES);
            memset(signature + SIGNATURE_P256_BYTES, s == 2 ? 0xff : 0, SIGNATURE_P256_BYTES);
            signature[SIGNATURE_P256_BYTES - 1] |= r == 1;
            signature[2 * SIGNATURE_P256_BYTES - 1] |= s == 1;
            assert_false(
                signature_is_valid(key, hash, (struct slice){ signature, sizeof signature }));
        }
    }
    signature_key_free(key);
}

static void a_point_that_is_not_on_the_curve_is_no_key(void **state)
{
    uint8_t x[64], y[64];
    struct slice good_x = bytes_of(POINT_X, x), good_y = bytes_of(POINT_Y, y);
    struct signature_key *key = NULL;
    const char *why = NULL;

    (void)state;
    y[31] ^= 1;
    assert_int_equal(signature_key_new_p256(good_x, good_y, &key, &why), ERR_INVALID);
    assert_string_equal(why, "it is no point on P-256");
    y[31] ^= 1;
    good_y.size--;
    assert_int_equal(signature_key_new_p256(good_x, good_y, &key, &why), ERR_INVALID);
    memset(x, 0, sizeof x);
    memset(y, 0, sizeof y);
    assert_int_equal(
        signature_key_new_p256((struct slice){ x, 32 }, (struct slice){ y, 32 }, &key, &why),
        ERR_INVALID);
    assert_null(key);
}

static void assert_rsa(size_t bits, bool odd, const char *exponent, const char *expected)
{
    uint8_t modulus[1024], e[16];
    struct signature_key *key = NULL;
    const char *why = "";
    size_t size = (bits + 7) / 8;

    memset(modulus, 0xff, sizeof modulus);
    modulus[0] = 0; /* A leading zero counts for nothing. */
    modulus[1] = (uint8_t)(0xffu >> (size * 8 - bits));
    modulus[size] = odd ? 0xff : 0xfe;
    err e_ = signature_key_new_rsa((struct slice){ modulus, size + 1 }, bytes_of(exponent, e), &key,
                                   &why);
    assert_string_equal(why, expected);
    assert_int_equal(e_, expected[0] == 0 ? ERR_OK : ERR_INVALID);
    signature_key_free(key);
}

static void keys_of_rsa_are_neither_weak_nor_huge(void **state)
{
    static const char size[] = "an RSA modulus has 2048 to 4096 bits";
    static const char exponent[] = "an RSA exponent is odd, and 65537 to 4294967295";

    (void)state;
    assert_rsa(2048, true, "AQAB", "");
    assert_rsa(4096, true, "AQAB", "");
    assert_rsa(2048, true, "_____w", "");
    assert_rsa(2047, true, "AQAB", size);
    assert_rsa(1024, true, "AQAB", size);
    assert_rsa(4097, true, "AQAB", size);
    assert_rsa(8, true, "AQAB", size);
    assert_rsa(2048, false, "AQAB", "an RSA modulus is odd");
    assert_rsa(2048, true, "Aw", exponent);      /* 3 */
    assert_rsa(2048, true, "AQAA", exponent);    /* 65536 */
    assert_rsa(2048, true, "AQAAAAE", exponent); /* 2^32 + 1 */
    assert_rsa(2048, true, "AA", exponent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signature_on_p256_is_checked_bit_by_bit),
        cmocka_unit_test(numbers_out_of_range_are_no_signature),
        cmocka_unit_test(a_point_that_is_not_on_the_curve_is_no_key),
        cmocka_unit_test(keys_of_rsa_are_neither_weak_nor_huge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
