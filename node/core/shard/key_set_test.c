#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "node/core/shard/key_set.h"

static struct slice number_key(char text[16], unsigned n)
{
    snprintf(text, 16, "key-%u", n);
    return slice_from_text(text);
}

/* Against a plain array of flags, through growth and removals in the middle of runs. */
static void behaves_like_a_set(void **state)
{
    struct key_set set = { 0 };
    bool in[500] = { false };
    char text[16];
    uint32_t random = 12345;
    (void)state;

    for (int step = 0; step < 20000; step++) {
        random = random * 1664525u + 1013904223u;
        unsigned n = (random >> 8) % 500;
        if (random >> 31) {
            assert_int_equal(key_set_add(&set, number_key(text, n)), !in[n]);
            in[n] = true;
        } else {
            assert_int_equal(key_set_remove(&set, number_key(text, n)), in[n]);
            in[n] = false;
        }
    }
    key_set_deinit(&set);
    assert_false(key_set_remove(&set, SLICE_LITERAL("gone")));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(behaves_like_a_set) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
