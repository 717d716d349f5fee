#include "runtime/crypto/hmac.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "runtime/base/hex.h"

static void assert_mac(struct slice secret, struct slice message, const char *expected)
{
    struct hmac_key key;
    uint8_t mac[HMAC_BYTES];
    char text[2 * HMAC_BYTES + 1];

    hmac_key_init(&key, secret);
    hmac_sign(&key, message, mac);
    hex_print(mac, sizeof mac, text);
    assert_string_equal(text, expected);
}

/* RFC 4231, cases 1, 2 and 6 (a secret longer than a block). */
static void the_macs_are_those_of_the_rfc(void **state)
{
    uint8_t secret[131];

    (void)state;
    memset(secret, 0x0b, 20);
    assert_mac((struct slice){ secret, 20 }, SLICE_LITERAL("Hi There"),
               "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    assert_mac(SLICE_LITERAL("Jefe"), SLICE_LITERAL("what do ya want for nothing?"),
               "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(secret, 0xaa, sizeof secret);
    assert_mac((struct slice){ secret, sizeof secret },
               SLICE_LITERAL("Test Using Larger Than Block-Size Key - Hash Key First"),
               "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void one_bit_makes_another_mac(void **state)
{
    uint8_t a[HMAC_BYTES] = { 1, 2, 3 };
    uint8_t b[HMAC_BYTES] = { 1, 2, 3 };

    (void)state;
    assert_true(hmac_equal(a, b, sizeof a));
    for (size_t i = 0; i < 8 * sizeof a; i++) {
        b[i / 8] ^= (uint8_t)(1u << i % 8);
        assert_false(hmac_equal(a, b, sizeof a));
        b[i / 8] ^= (uint8_t)(1u << i % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_macs_are_those_of_the_rfc),
        cmocka_unit_test(one_bit_makes_another_mac),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
