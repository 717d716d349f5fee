#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/codec/text_rule.h"
#include "runtime/base/check.h"

#define EIGHT(text) text text text text text text text text

static void a_value_is_told_in_its_own_letters(void **state)
{
    static const struct {
        const char *given, *told;
    } cases[] = {
        { "", "" },
        { "caf\u00e9 \u6f22 \U0001f0a1", "caf\u00e9 \u6f22 \U0001f0a1" },
        { "a\nb\x7f", "a\\x0ab\\x7f" },
        { "\xc2\x85", "\\xc2\\x85" },
        { "\xff\xc3", "\\xff\\xc3" },
        { "\xed\xa0\x80", "\\xed\\xa0\\x80" },
        { EIGHT("12345678") "9", EIGHT("12345678") },
        { "1" EIGHT("\u6f22\u6f22\u6f22"),
          "1" EIGHT("\u6f22\u6f22") "\u6f22\u6f22\u6f22\u6f22\u6f22" },
        { "1" EIGHT("\x01\x01"), "1" EIGHT("\\x01") "\\x01\\x01\\x01\\x01\\x01\\x01\\x01" },
    };
    struct arena arena = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *told = text_shorten(&arena, slice_from_text(cases[i].given));
        assert_string_equal(told, cases[i].told);
        assert_true(strlen(told) <= 64 && text_is_clean(slice_from_text(told)));
    }
    arena_deinit(&arena);
}

static void entries_of_before_told_ascii_alone(void **state)
{
    struct arena arena = { 0 };

    (void)state;
    assert_string_equal(text_shorten_ascii(&arena, slice_from_text("a\u00e9\n")), "a???");
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_told_in_its_own_letters),
        cmocka_unit_test(entries_of_before_told_ascii_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
