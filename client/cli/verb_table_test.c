#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/cli/verb_table.h"
#include "runtime/base/check.h"

#define PAGE_BYTES_MAX 262144u

/* docs/holdfast.1, with a space for each newline of a tag. */
static char *read_page(void)
{
    char *page = mem_zalloc(PAGE_BYTES_MAX);
    FILE *file = fopen(HOLDFAST_MAN_PAGE, "re");

    assert_non_null(file);
    size_t size = fread(page, 1, PAGE_BYTES_MAX - 1, file);
    assert_true(size > 0 && size < PAGE_BYTES_MAX - 1);
    fclose(file);
    return page;
}

/* Whether a line that begins with `start` has `text`, followed by a space or the line's end. */
static bool has_line(const char *page, const char *start, const char *text)
{
    size_t size = strlen(text);

    for (const char *line = page; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (line[0] == 0 || strncmp(line, start, strlen(start)) != 0)
            continue;
        for (const char *at = strstr(line, text); at != NULL; at = strstr(at + 1, text)) {
            if (at > line + strcspn(line, "\n"))
                break;
            if (at[size] == ' ' || at[size] == '\n')
                return true;
        }
    }
    return false;
}

/* "node drain|undrain" as mdoc has it: "node drain | undrain". */
static void spaced(const char *words, char ret_text[128])
{
    size_t size = 0;

    for (; *words != 0 && size < 124; words++) {
        if (*words == '|')
            ret_text[size++] = ' ';
        ret_text[size++] = *words;
        if (*words == '|')
            ret_text[size++] = ' ';
    }
    ret_text[size] = 0;
}

static void every_verb_is_in_the_manual(void **state)
{
    char *page = read_page();
    size_t count;
    const struct verb *verbs = verb_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        char words[128], tag[160];

        /* Of test builds alone. */
        if (strcmp(verbs[i].words, "debug inject") == 0)
            continue;
        spaced(verbs[i].words, words);
        snprintf(tag, sizeof tag, ".It Cm %s", words);
        if (!has_line(page, tag, words))
            fail_msg("docs/holdfast.1 has no line '%s'", tag);
    }
    free(page);
}

static void every_option_is_in_the_manual(void **state)
{
    char *page = read_page();
    size_t count;
    const struct command_option *options = command_option_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        char tag[96];

        snprintf(tag, sizeof tag, "Fl -%s", options[i].flag);
        if (!has_line(page, ".It", tag))
            fail_msg("docs/holdfast.1 has no line '.It ... %s'", tag);
    }
    free(page);
}

static void every_option_is_of_verbs_that_there_are(void **state)
{
    size_t count;
    const struct command_option *options = command_option_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        char verbs[128];
        char *rest = NULL;

        snprintf(verbs, sizeof verbs, "%s", options[i].verbs);
        for (char *verb = strtok_r(verbs, ",", &rest); verb != NULL;
             verb = strtok_r(NULL, ",", &rest)) {
            verb += strspn(verb, " ");
            verb[strcspn(verb, " ")] = 0;
            if (verb_find(verb) == NULL)
                fail_msg("--%s is of '%s', which is no verb", options[i].flag, verb);
        }
    }
}

static void a_verb_is_found_by_its_whole_first_word(void **state)
{
    (void)state;

    assert_non_null(verb_find("ledger"));
    assert_null(verb_find("led"));
    assert_null(verb_find("ledger list"));
    assert_null(verb_find(""));
}

static void the_nearest_verb_is_named(void **state)
{
    static const struct {
        const char *words[3];
        const char *why; /* NULL: nothing is wrong with them. */
    } cases[] = {
        { { "stauts" }, "there is no verb 'stauts'; did you mean 'status'?" },
        { { "led" }, "there is no verb 'led'" },
        { { "dance" }, "there is no verb 'dance'" },
        { { "\x1b[31m\xff" }, "there is no verb '?[31m?'" },
        { { "ledger", "lits", "42" },
          "there is no verb 'ledger lits'; did you mean 'ledger list'?" },
        { { "node", "drian" }, "there is no verb 'node drian'; did you mean 'node drain'?" },
        { { "ledger", "42" }, NULL },
        { { "node", "undrain" }, NULL },
        { { "backup", "lisst" }, NULL }, /* A directory may be called that. */
        { { "call", "LedgerService/Grant" }, NULL },
        { { "status" }, NULL },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct arguments arguments = { 0 };
        char why[VERB_WHY_BYTES] = "";

        while (arguments.word_count < 3 && cases[i].words[arguments.word_count] != NULL) {
            arguments.words[arguments.word_count] = cases[i].words[arguments.word_count];
            arguments.word_count++;
        }
        assert_int_equal(verb_misspelt(&arguments, why), cases[i].why != NULL);
        assert_string_equal(why, cases[i].why != NULL ? cases[i].why : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_verb_is_in_the_manual),
        cmocka_unit_test(every_option_is_in_the_manual),
        cmocka_unit_test(every_option_is_of_verbs_that_there_are),
        cmocka_unit_test(the_nearest_verb_is_named),
        cmocka_unit_test(a_verb_is_found_by_its_whole_first_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
