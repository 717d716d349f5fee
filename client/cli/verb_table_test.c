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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_verb_is_in_the_manual),
        cmocka_unit_test(every_option_is_in_the_manual),
        cmocka_unit_test(every_option_is_of_verbs_that_there_are),
        cmocka_unit_test(a_verb_is_found_by_its_whole_first_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
