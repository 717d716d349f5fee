/* Errors name an entry of a map by its key. */
#include "runtime/base/field_key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void assert_printed(const char *key, size_t place, const char *wanted)
{
    char text[FIELD_KEY_BYTES];

    assert_string_equal(field_key_print(slice_from_text(key), place, text), wanted);
}

static void an_entry_is_named_by_its_key(void **state)
{
    (void)state;
    assert_printed("gold", 7, "[\"gold\"]");
    assert_printed("a.b[0]", 0, "[\"a.b[0]\"]");
    assert_printed("\xC3\xA9", 0, "[\"\xC3\xA9\"]");
}

static void an_empty_key_leaves_the_place(void **state)
{
    (void)state;
    assert_printed("", 0, "[0]");
    assert_printed("", 15, "[15]");
}

static void no_key_ends_the_name_early(void **state)
{
    char long_key[200];

    (void)state;
    assert_printed("a\"]b", 0, "[\"a\\\"]b\"]");
    assert_printed("a\\", 0, "[\"a\\\\\"]");
    assert_printed("a\n\x1b", 0, "[\"a??\"]");
    memset(long_key, '"', sizeof long_key - 1);
    long_key[sizeof long_key - 1] = 0;
    char text[FIELD_KEY_BYTES];
    field_key_print(slice_from_text(long_key), 0, text);
    assert_string_equal(text + strlen(text) - 5, "...\"]");
}

static void a_secret_is_not_shown(void **state)
{
    char text[FIELD_KEY_BYTES];

    (void)state;
    field_key_print(slice_from_text("hf_0123456789abcdef"), 0, text);
    assert_null(strstr(text, "0123"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_is_named_by_its_key),
        cmocka_unit_test(an_empty_key_leaves_the_place),
        cmocka_unit_test(no_key_ends_the_name_early),
        cmocka_unit_test(a_secret_is_not_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
