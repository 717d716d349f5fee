#include "node/core/shard/answer_sizes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "idl/method.h"

#define ADA                                                                                        \
    SLICE_LITERAL("\x0a\x03"                                                                       \
                  "ada")
#define ADA_ITEMS                                                                                  \
    SLICE_LITERAL("\x0a\x03"                                                                       \
                  "ada"                                                                            \
                  "\x62\x05"                                                                       \
                  "items")
/* With what is no part of the name: field 21, a number. */
#define ADA_READER                                                                                 \
    SLICE_LITERAL("\x0a\x03"                                                                       \
                  "ada"                                                                            \
                  "\xa8\x01\x07")
#define BOB                                                                                        \
    SLICE_LITERAL("\x0a\x03"                                                                       \
                  "bob")

static void it_knows_what_it_was_told_of_that_read_alone(void **state)
{
    struct answer_sizes sizes = { 0 };

    (void)state;
    assert_int_equal(answer_sizes_find(&sizes, METHOD_GET_PROFILE, ADA), 0);
    answer_sizes_note(&sizes, METHOD_GET_PROFILE, ADA, 100000);
    assert_int_equal(answer_sizes_find(&sizes, METHOD_GET_PROFILE, ADA), 100000);
    assert_int_equal(answer_sizes_find(&sizes, METHOD_GET_PROFILE, ADA_ITEMS), 0);
    assert_int_equal(answer_sizes_find(&sizes, METHOD_LIST_ITEMS, ADA), 0);
    assert_int_equal(answer_sizes_find(&sizes, METHOD_GET_PROFILE, BOB), 0);
}

static void who_reads_is_no_part_of_the_name(void **state)
{
    struct answer_sizes sizes = { 0 };

    (void)state;
    answer_sizes_note(&sizes, METHOD_READ_SETTLED, ADA_READER, 5000);
    assert_int_equal(answer_sizes_find(&sizes, METHOD_READ_SETTLED, ADA), 5000);
}

static void any_bytes_have_a_name(void **state)
{
    struct answer_sizes sizes = { 0 };
    uint8_t bytes[64];

    (void)state;
    for (unsigned i = 0; i < 256; i++) {
        memset(bytes, (int)i, sizeof bytes);
        answer_sizes_note(&sizes, i, (struct slice){ bytes, i % sizeof bytes }, 1 + i);
        assert_int_equal(answer_sizes_find(&sizes, i, (struct slice){ bytes, i % sizeof bytes }),
                         1 + i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_knows_what_it_was_told_of_that_read_alone),
        cmocka_unit_test(who_reads_is_no_part_of_the_name),
        cmocka_unit_test(any_bytes_have_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
