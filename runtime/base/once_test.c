#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "runtime/base/once.h"

static void a_full_list_of_different_texts_has_none_twice(void **state)
{
    char texts[ONCE_MAX][16];
    const char *list[ONCE_MAX];
    struct once once = { 0 };

    (void)state;
    for (size_t i = 0; i < ONCE_MAX; i++) {
        snprintf(texts[i], sizeof texts[i], "target-%zu", i);
        list[i] = texts[i];
        assert_true(once_add(&once, list, i));
    }
}

static void a_text_that_stands_before_is_found_wherever_it_stands(void **state)
{
    (void)state;
    for (size_t first = 0; first < ONCE_MAX - 1; first++) {
        char texts[ONCE_MAX][16];
        const char *list[ONCE_MAX];
        struct once once = { 0 };

        for (size_t i = 0; i < ONCE_MAX; i++) {
            snprintf(texts[i], sizeof texts[i], "t%zu", i < ONCE_MAX - 1 ? i : first);
            list[i] = texts[i];
            assert_int_equal(once_add(&once, list, i), i < ONCE_MAX - 1);
        }
    }
}

static void texts_are_compared_to_their_ends(void **state)
{
    const char *list[] = { "", "a", "ab", "b", "", "ab" };
    const bool fresh[] = { true, true, true, true, false, false };
    struct once once = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(list); i++)
        assert_int_equal(once_add(&once, list, i), fresh[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_list_of_different_texts_has_none_twice),
        cmocka_unit_test(a_text_that_stands_before_is_found_wherever_it_stands),
        cmocka_unit_test(texts_are_compared_to_their_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
