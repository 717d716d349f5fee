#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/cli/command_line.h"
#include "client/cli/console/options.h"
#include "client/cli/verb_rows.h"
#include "client/cli/verb_table.h"

static err parse(char **words, struct arguments *arguments, char why[COMMAND_WHY_BYTES])
{
    int count = 0;
    while (words[count] != NULL)
        count++;
    return command_line_parse(count, words, arguments, why);
}

static void words_and_options_may_be_mixed(void **state)
{
    char *words[] = { "holdfast",          "op",       "-o",     "json",
                      "resolve",           "player:1", "--seal", "id",
                      "--deadline-ms=500", NULL };
    struct arguments arguments;
    char why[COMMAND_WHY_BYTES] = "";
    (void)state;

    assert_int_equal(parse(words, &arguments, why), ERR_OK);
    assert_int_equal(arguments.word_count, 4);
    assert_string_equal(arguments.words[3], "id");
    assert_string_equal(option_text(&arguments, &option_output), "json");
    assert_string_equal(option_text(&arguments, &option_deadline_ms), "500");
    assert_true(option_is_set(&arguments, option_find(slice_from_text("seal"))));
    assert_false(option_is_set(&arguments, &option_dry_run));
}

static void unknown_option_is_named(void **state)
{
    char *words[] = { "holdfast", "--sael", NULL };
    struct arguments arguments;
    char why[COMMAND_WHY_BYTES] = "";
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
        { "--hf_5ec4e7", "there is no option --hf_..." },
        { "--output=jsno", "--output is table or json, not 'jsno'; did you mean json?" },
        { "--output=hf_5ec4e7", "--output is table or json, not 'hf_...'" },
        { "--json=s3cret", "--json takes no value" },
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *words[] = { "holdfast", text_lend(cases[i].word), NULL };
        struct arguments arguments;
        char why[COMMAND_WHY_BYTES] = "";

        assert_int_equal(parse(words, &arguments, why), ERR_INVALID);
        assert_string_equal(why, cases[i].why);
    }
}

static void missing_value_is_named(void **state)
{
    char *words[] = { "holdfast", "dev", "--nodes", NULL };
    struct arguments arguments;
    char why[COMMAND_WHY_BYTES] = "";
    (void)state;

    assert_int_equal(parse(words, &arguments, why), ERR_INVALID);
    assert_non_null(strstr(why, "--nodes"));
}

static void numbers_are_checked_against_their_bounds(void **state)
{
    uint32_t number = 7;
    (void)state;

    assert_int_equal(argument_number("--nodes", "3", 1, 9, &number), ERR_OK);
    assert_int_equal(number, 3);
    assert_int_equal(argument_number("--nodes", "10", 1, 9, &number), ERR_INVALID);
    assert_int_equal(argument_number("--nodes", "-1", 1, 9, &number), ERR_INVALID);
    assert_int_equal(argument_number("--nodes", "3x", 1, 9, &number), ERR_INVALID);
    assert_int_equal(number, 3);
}

static void the_last_of_two_values_counts(void **state)
{
    char *words[] = { "holdfast", "--reason", "a", "--json", "--reason=b", "-o", "table", NULL };
    struct arguments arguments;
    char why[COMMAND_WHY_BYTES] = "";
    (void)state;

    assert_int_equal(parse(words, &arguments, why), ERR_OK);
    assert_string_equal(option_text(&arguments, &option_reason), "b");
    /* --json is --output json wherever it stands. */
    assert_string_equal(option_text(&arguments, &option_output), "json");
}

static void what_is_not_given_comes_from_the_environment_or_the_default(void **state)
{
    char *words[] = { "holdfast", "--endpoint=http://given", NULL };
    struct arguments arguments, none = { 0 };
    char why[COMMAND_WHY_BYTES] = "";
    (void)state;

    unsetenv("HOLDFAST_ENDPOINT");
    assert_string_equal(option_text(&none, &option_endpoint), "http://127.0.0.1:7400");
    assert_string_equal(option_text(&none, &option_reason), "");
    setenv("HOLDFAST_ENDPOINT", "http://environment", 1);
    assert_string_equal(option_text(&none, &option_endpoint), "http://environment");
    assert_int_equal(parse(words, &arguments, why), ERR_OK);
    assert_string_equal(option_text(&arguments, &option_endpoint), "http://given");
    setenv("HOLDFAST_ENDPOINT", "", 1);
    assert_string_equal(option_text(&none, &option_endpoint), "http://127.0.0.1:7400");
    unsetenv("HOLDFAST_ENDPOINT");
}

/* Every option of every verb may stand in one line. */
static void every_option_there_is_may_be_given(void **state)
{
    const struct command_option *options[OPTIONS_MAX];
    size_t count = options_gather(options);
    char *words[2 * OPTIONS_MAX + 2] = { "holdfast" };
    char flags[OPTIONS_MAX][80];
    struct arguments arguments;
    char why[COMMAND_WHY_BYTES] = "";
    int at = 1;
    (void)state;

    for (size_t i = 0; i < count; i++) {
        bool is_output = strcmp(options[i]->flag, "output") == 0;
        snprintf(flags[i], sizeof flags[i], "--%s", options[i]->flag);
        words[at++] = flags[i];
        if (options[i]->value != NULL)
            words[at++] = is_output ? "table" : "x";
    }
    assert_int_equal(parse(words, &arguments, why), ERR_OK);
    assert_int_equal(arguments.given_count, count);
}

static void a_list_has_the_elements_between_its_commas(void **state)
{
    const char *list = "a,,bc,";
    struct slice one;
    (void)state;

    assert_true(list_next(&list, &one) && slice_equal(one, slice_from_text("a")));
    assert_true(list_next(&list, &one) && one.size == 0);
    assert_true(list_next(&list, &one) && slice_equal(one, slice_from_text("bc")));
    assert_false(list_next(&list, &one));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_options_may_be_mixed),
        cmocka_unit_test(unknown_option_is_named),
        cmocka_unit_test(the_nearest_option_is_named_and_no_value_repeated),
        cmocka_unit_test(missing_value_is_named),
        cmocka_unit_test(numbers_are_checked_against_their_bounds),
        cmocka_unit_test(the_last_of_two_values_counts),
        cmocka_unit_test(what_is_not_given_comes_from_the_environment_or_the_default),
        cmocka_unit_test(every_option_there_is_may_be_given),
        cmocka_unit_test(a_list_has_the_elements_between_its_commas),
    };
    verb_table_set(verb_rows);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
