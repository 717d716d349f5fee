#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "idl/as_of.h"

static void what_is_printed_is_read_again(void **state)
{
    static const struct as_of all[] = {
        { 0, 1, 1, 1 },
        { 63, 7, 0x8d2e4f1122334455u, 123456789 },
        { UINT32_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX },
    };
    char text[AS_OF_TEXT_SIZE] = "c1.";
    struct as_of back;

    (void)state;
    as_of_print(&(struct as_of){ .shard = 3 }, text);
    assert_string_equal(text, "");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        as_of_print(&all[i], text);
        assert_memory_equal(text, "c1.", 3);
        assert_int_equal(as_of_parse(slice_from_text(text), &back), ERR_OK);
        assert_int_equal(back.shard, all[i].shard);
        assert_true(back.epoch == all[i].epoch && back.owner == all[i].owner);
        assert_true(back.counter == all[i].counter);
    }
}

/* A caller who changes a letter, or sends half of one, is told so; it never names another place. */
static void what_was_not_printed_is_refused(void **state)
{
    static const struct as_of some = { 63, 7, 0x8d2e4f1122334455u, 123456789 };
    static const char letters[] = "ABCDwxyz0189-_";
    char text[AS_OF_TEXT_SIZE], wrong[AS_OF_TEXT_SIZE];
    struct as_of back;

    (void)state;
    as_of_print(&some, text);
    size_t size = strlen(text);
    for (size_t i = 0; i < size; i++) {
        assert_int_equal(as_of_parse((struct slice){ (uint8_t *)text, i }, &back), ERR_INVALID);
        for (size_t k = 0; k < sizeof letters - 1; k++) {
            memcpy(wrong, text, size + 1);
            if (wrong[i] == letters[k])
                continue;
            wrong[i] = letters[k];
            if (as_of_parse(slice_from_text(wrong), &back) == ERR_OK) /* Bits that base64 drops. */
                assert_true(back.epoch == some.epoch && back.counter == some.counter &&
                            back.owner == some.owner && back.shard == some.shard);
        }
    }
    assert_int_equal(as_of_parse(slice_from_text("c2.AAAA"), &back), ERR_INVALID);
    assert_int_equal(as_of_parse(slice_from_text("c1.!!"), &back), ERR_INVALID);
    assert_int_equal(as_of_parse(slice_from_text(""), &back), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_printed_is_read_again),
        cmocka_unit_test(what_was_not_printed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
