#include "runtime/cluster/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void hint_comes_back_as_sent(void **state)
{
    struct wire_hint hint = { .owner = 0x1122334455667788, .epoch = 9 };
    struct wire_hint got = { 0 };
    struct buf out = { 0 };

    (void)state;
    wire_hint_encode(&hint, &out);
    assert_int_equal(out.size, WIRE_HINT_SIZE);
    assert_int_equal(out.data[0], 0x88);
    assert_int_equal(wire_hint_decode(buf_slice(&out), &got), ERR_OK);
    assert_true(got.owner == hint.owner && got.epoch == 9);
    buf_deinit(&out);
}

static void empty_hint_means_unknown_and_odd_sizes_are_corrupt(void **state)
{
    struct wire_hint got = { .owner = 5, .epoch = 5 };
    uint8_t bytes[17] = { 0 };

    (void)state;
    assert_int_equal(wire_hint_decode((struct slice){ bytes, 15 }, &got), ERR_CORRUPT);
    assert_int_equal(wire_hint_decode((struct slice){ bytes, 17 }, &got), ERR_CORRUPT);
    assert_true(got.owner == 5);
    assert_int_equal(wire_hint_decode((struct slice){ bytes, 0 }, &got), ERR_OK);
    assert_true(got.owner == 0 && got.epoch == 0);
}

static void an_asker_is_told_by_the_same_number_everywhere(void **state)
{
    (void)state;
    assert_int_equal(wire_asker(0), 2);
    assert_int_equal(wire_asker(65533), 65535);
    assert_int_equal(wire_asker(65534), 2);
    assert_int_equal(wire_asker(0x0000000500000000u), 27); /* 0x500000005 % 65534 and 2. */
    assert_int_equal(wire_asker(0x123456789abcdef1u),
                     2 + (0x123456789abcdef1u ^ 0x12345678u) % 65534);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hint_comes_back_as_sent),
        cmocka_unit_test(an_asker_is_told_by_the_same_number_everywhere),
        cmocka_unit_test(empty_hint_means_unknown_and_odd_sizes_are_corrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
