#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/cli/arguments.h"

static err parse(char **words, struct arguments *arguments, char why[256])
{
    int count = 0;
    while (words[count] != NULL)
        count++;
    return arguments_parse(count, words, arguments, why);
}

static void words_and_options_may_be_mixed(void **state)
{
    char *words[] = { "holdfast",          "op",       "-o",     "json",
                      "resolve",           "player:1", "--seal", "id",
                      "--deadline-ms=500", NULL };
    struct arguments arguments;
    char why[256] = "";
    (void)state;

    assert_int_equal(parse(words, &arguments, why), ERR_OK);
    assert_int_equal(arguments.word_count, 4);
    assert_string_equal(arguments.words[3], "id");
    assert_string_equal(arguments.output, "json");
    assert_string_equal(arguments.deadline_ms, "500");
    assert_true(arguments.seal);
}

static void unknown_option_is_named(void **state)
{
    char *words[] = { "holdfast", "--sael", NULL };
    struct arguments arguments;
    char why[256] = "";
    (void)state;

    assert_int_equal(parse(words, &arguments, why), ERR_INVALID);
    assert_non_null(strstr(why, "--sael"));
}

static void the_nearest_option_is_named_and_no_value_repeated(void **state)
{
    static const struct {
        const char *word, *why;
    } cases[] = {
        { "--sael", "there is no option --sael; did you mean --seal?" },
        { "--endpiont=http://user:s3cret@x",
          "there is no option --endpiont; did you mean --endpoint?" },
        { "--page_size", "there is no option --page_size; did you mean --page-size?" },
        { "--hlep", "there is no option --hlep; did you mean --help?" },
        { "--teleport", "there is no option --teleport" },
        { "--\x1b[31m\xff\xc2\x9b", "there is no option --?[31m??" },
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *words[] = { "holdfast", (char *)(uintptr_t)cases[i].word, NULL };
        struct arguments arguments;
        char why[256] = "";

        assert_int_equal(parse(words, &arguments, why), ERR_INVALID);
        assert_string_equal(why, cases[i].why);
    }
}

static void missing_value_is_named(void **state)
{
    char *words[] = { "holdfast", "dev", "--nodes", NULL };
    struct arguments arguments;
    char why[256] = "";
    (void)state;

    assert_int_equal(parse(words, &arguments, why), ERR_INVALID);
    assert_non_null(strstr(why, "--nodes"));
}

static void numbers_are_checked_against_their_bounds(void **state)
{
    uint32_t number = 7;
    (void)state;

    assert_int_equal(argument_number("nodes", "3", 1, 9, &number), ERR_OK);
    assert_int_equal(number, 3);
    assert_int_equal(argument_number("nodes", "10", 1, 9, &number), ERR_INVALID);
    assert_int_equal(argument_number("nodes", "-1", 1, 9, &number), ERR_INVALID);
    assert_int_equal(argument_number("nodes", "3x", 1, 9, &number), ERR_INVALID);
    assert_int_equal(number, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_options_may_be_mixed),
        cmocka_unit_test(unknown_option_is_named),
        cmocka_unit_test(the_nearest_option_is_named_and_no_value_repeated),
        cmocka_unit_test(missing_value_is_named),
        cmocka_unit_test(numbers_are_checked_against_their_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
