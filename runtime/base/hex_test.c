#include "runtime/base/hex.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void every_byte_comes_back(void **state)
{
    uint8_t bytes[256], back[256] = { 0 };
    char text[513];
    (void)state;

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    hex_print(bytes, sizeof bytes, text);
    assert_int_equal(strlen(text), 512);
    assert_memory_equal(text + 2 * 0xa5, "a5", 2);
    assert_int_equal(hex_parse(slice_from_text(text), sizeof back, back), ERR_OK);
    assert_memory_equal(back, bytes, sizeof bytes);
}

static void what_is_no_lower_case_digit_or_of_another_length_is_refused(void **state)
{
    static const char *const bad[] = { "",     "0",    "012",  "01234", "0g23", "0A23",
                                       " 123", "+123", "0x12", "-123",  "/123", ":123" };
    (void)state;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t bytes[2] = { 7, 7 };
        assert_int_equal(hex_parse(slice_from_text(bad[i]), sizeof bytes, bytes), ERR_INVALID);
        assert_int_equal(bytes[0], 7);
        assert_int_equal(bytes[1], 7);
    }
}

static void a_digit_has_either_case(void **state)
{
    static const char digits[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";
    (void)state;

    for (int i = 0; i < 16; i++) {
        assert_int_equal(hex_digit((uint8_t)digits[i]), i);
        assert_int_equal(hex_digit((uint8_t)upper[i]), i);
    }
    for (unsigned c = 0; c < 256; c++)
        assert_true((hex_digit((uint8_t)c) >= 0) ==
                    (c != 0 && strchr("0123456789abcdefABCDEF", (int)c) != NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_comes_back),
        cmocka_unit_test(a_digit_has_either_case),
        cmocka_unit_test(what_is_no_lower_case_digit_or_of_another_length_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
