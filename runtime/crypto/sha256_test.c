#include "runtime/crypto/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEXT_BYTES 200u

static struct slice text_of(const char *text)
{
    return slice_from_text(text);
}

static void assert_hash(struct slice first, struct slice second, const uint8_t *expected)
{
    uint8_t hash[SHA256_BYTES];

    sha256_pair(first, second, hash);
    assert_memory_equal(hash, expected, sizeof hash);
    sha256_pair_portable(first, second, hash);
    assert_memory_equal(hash, expected, sizeof hash);
}

/* FIPS 180-4's examples. */
static void known_texts_have_their_known_hashes(void **state)
{
    static const uint8_t abc[] = {
        0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40,
        0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17,
        0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad,
    };
    static const uint8_t two_blocks[] = {
        0x24, 0x8d, 0x6a, 0x61, 0xd2, 0x06, 0x38, 0xb8, 0xe5, 0xc0, 0x26,
        0x93, 0x0c, 0x3e, 0x60, 0x39, 0xa3, 0x3c, 0xe4, 0x59, 0x64, 0xff,
        0x21, 0x67, 0xf6, 0xec, 0xed, 0xd4, 0x19, 0xdb, 0x06, 0xc1,
    };

    (void)state;
    assert_hash(text_of("a"), text_of("bc"), abc);
    assert_hash(text_of("abcdbcdecdefdefgefghfghighijhijk"), text_of("ijkljklmklmnlmnomnopnopq"),
                two_blocks);
}

static void every_length_and_every_cut_hashes_as_mbedtls_does(void **state)
{
    uint8_t text[TEXT_BYTES];
    uint8_t hash[SHA256_BYTES];
    uint8_t expected[SHA256_BYTES];

    (void)state;
    for (unsigned i = 0; i < TEXT_BYTES; i++)
        text[i] = (uint8_t)(i * 37 + 11);
    for (size_t size = 0; size <= TEXT_BYTES; size++) {
        for (size_t cut = 0; cut <= size; cut++) {
            struct slice first = { text, cut };
            struct slice second = { text + cut, size - cut };

            sha256_pair(first, second, hash);
            sha256_pair_portable(first, second, expected);
            assert_memory_equal(hash, expected, sizeof hash);
        }
    }
}

static void a_hash_may_replace_what_it_was_made_of(void **state)
{
    uint8_t chain[SHA256_BYTES] = { 1, 2, 3 };
    uint8_t expected[SHA256_BYTES];
    struct slice entry = text_of("an entry");

    (void)state;
    sha256_pair_portable((struct slice){ chain, sizeof chain }, entry, expected);
    sha256_pair((struct slice){ chain, sizeof chain }, entry, chain);
    assert_memory_equal(chain, expected, sizeof chain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_texts_have_their_known_hashes),
        cmocka_unit_test(every_length_and_every_cut_hashes_as_mbedtls_does),
        cmocka_unit_test(a_hash_may_replace_what_it_was_made_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
