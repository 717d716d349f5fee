#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/cli/verb_rows.h"
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

/* Of the list that tells of verbs, or of options. */
static const char *section_begin(const char *page, const char *line)
{
    const char *begin = strstr(page, line);

    if (begin == NULL)
        fail_msg("docs/holdfast.1 has no line '%s'", line);
    return begin;
}

static void every_verb_is_in_the_manual(void **state)
{
    char *page = read_page();
    const struct verb *verb;
    (void)state;

    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        char tag[160];

        /* Of test builds alone. */
        if (strcmp(verb->words, "debug inject") == 0)
            continue;
        snprintf(tag, sizeof tag, ".It Cm %s", verb->words);
        if (!has_line(page, tag, verb->words))
            fail_msg("docs/holdfast.1 has no line '%s'", tag);
    }
    free(page);
}

/* ".It Cm ledger list Ar player": what stands behind the verb begins with a capital. */
static void the_manual_tells_of_no_verb_that_is_not_there(void **state)
{
    char *page = read_page();
    size_t told = 0;
    (void)state;

    section_begin(page, ".Sh DESCRIPTION\n");
    for (const char *at = strstr(page, "\n.It Cm "); at != NULL; at = strstr(at + 1, "\n.It Cm ")) {
        const char *words[2] = { NULL };
        char line[256], *rest = NULL;
        uint32_t count = 0;

        snprintf(line, sizeof line, "%.*s", (int)strcspn(at + 8, "\n"), at + 8);
        for (char *word = strtok_r(line, " ", &rest); word != NULL && count < 2;
             word = strtok_r(NULL, " ", &rest)) {
            if (word[0] >= 'A' && word[0] <= 'Z')
                break;
            words[count++] = word;
        }
        const struct verb *verb = verb_named(words, count);
        if (verb == NULL || verb_word_count(verb) != count)
            fail_msg("docs/holdfast.1 tells of '%.40s', which is no verb", at + 8);
        told++;
    }
    assert_true(told > 40);
    free(page);
}

/* What the manual says of an option, up to the next one; `ret_text` begins with its tag's line. */
static void option_entry(const char *page, const char *flag, char ret_text[1024])
{
    char tag[96];
    size_t size = strlen(flag) + 4;

    snprintf(tag, sizeof tag, "Fl -%s", flag);
    for (const char *line = strstr(page, "\n.It Fl "); line != NULL;
         line = strstr(line + 1, "\n.It Fl ")) {
        size_t length = strcspn(line + 1, "\n") + 1;
        const char *at = memmem(line, length, tag, size);
        if (at == NULL || (at[size] != ' ' && at[size] != '\n'))
            continue;
        const char *end = strstr(line + 1, "\n.It ");
        const char *last = strstr(line + 1, "\n.El");
        if (end == NULL || end > last)
            end = last;
        assert_true(end > line && end - line < 1024);
        snprintf(ret_text, 1024, "%.*s\n", (int)(end - line), line);
        return;
    }
    fail_msg("docs/holdfast.1 has no line '.It ... %s'", tag);
}

/* Whether the entry's line ".Cm item , ledger post :" has this verb, or its first word. */
static bool entry_names(const char *entry, const struct verb *verb)
{
    for (const char *line = strstr(entry, "\n.Cm "); line != NULL;
         line = strstr(line + 1, "\n.Cm ")) {
        char names[256], *rest = NULL;
        struct slice first = verb_word(verb, 0);

        snprintf(names, sizeof names, "%.*s", (int)strcspn(line + 5, ":\n"), line + 5);
        for (char *name = strtok_r(names, ",", &rest); name != NULL;
             name = strtok_r(NULL, ",", &rest)) {
            name += strspn(name, " ");
            for (size_t size = strlen(name); size > 0 && name[size - 1] == ' '; size--)
                name[size - 1] = 0;
            if (strcmp(name, verb->words) == 0 || slice_equal(slice_from_text(name), first))
                return true;
        }
    }
    return false;
}

static void the_manual_tells_which_verbs_an_option_is_of(void **state)
{
    const struct command_option *options[OPTIONS_MAX];
    size_t count = options_gather(options);
    char *page = read_page();
    (void)state;

    assert_true(count > 40);
    for (size_t i = 0; i < count; i++) {
        const struct verb *verb;
        char entry[1024];

        option_entry(page, options[i]->flag, entry);
        for (size_t k = 0; (verb = verb_at(k)) != NULL && !options[i]->common; k++) {
            if (strcmp(verb->words, "debug inject") == 0) /* Of test builds alone. */
                continue;
            if (verb_has_option(verb, options[i]->flag) && !entry_names(entry, verb))
                fail_msg("docs/holdfast.1: --%s is not told to be of %s", options[i]->flag,
                         verb->words);
        }
    }
    free(page);
}

static void the_manual_tells_of_no_option_that_is_not_there(void **state)
{
    char *page = read_page();
    const char *list = section_begin(page, "The options are:\n");
    size_t told = 0;
    (void)state;

    for (const char *at = strstr(list, "\n.It Fl "); at != NULL; at = strstr(at + 1, "\n.It Fl ")) {
        const char *end = at + 1 + strcspn(at + 1, "\n");
        for (const char *fl = strstr(at, "Fl -"); fl != NULL && fl < end;
             fl = strstr(fl + 1, "Fl -")) {
            struct slice flag = { (const uint8_t *)fl + 4, strcspn(fl + 4, " \n") };
            if (slice_equal(flag, slice_from_text("help")) ||
                slice_equal(flag, slice_from_text("version")))
                continue;
            if (option_find(flag) == NULL)
                fail_msg("docs/holdfast.1 tells of --%.20s, which no verb has", fl + 4);
            told++;
        }
    }
    assert_true(told > 40);
    free(page);
}

/* The parser knows no verb when it sees an option. */
static void options_of_one_flag_all_take_a_value_or_none_does(void **state)
{
    const struct verb *verb;
    (void)state;

    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        for (size_t k = 0; verb->options[k] != NULL; k++) {
            const struct command_option *option = verb->options[k];
            const struct command_option *first = option_find(slice_from_text(option->flag));

            assert_int_equal(option->value == NULL, first->value == NULL);
            assert_int_equal(option->common, first->common);
            assert_non_null(option->meaning);
        }
    }
}

static void every_verb_says_what_it_is(void **state)
{
    const struct verb *verb, *other;
    (void)state;

    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        assert_true(verb->topic < VERB_TOPICS);
        assert_true(verb->summary[0] != 0 && strchr(verb->summary, '\n') == NULL);
        assert_non_null(verb->run);
        /* Options that its usage names are its own. */
        for (const char *at = strstr(verb->arguments, "--"); at != NULL;
             at = strstr(at + 2, "--")) {
            char flag[64];
            snprintf(flag, sizeof flag, "%.*s", (int)strcspn(at + 2, " ]"), at + 2);
            if (!verb_has_option(verb, flag))
                fail_msg("%s has no option --%s", verb->words, flag);
        }
        for (size_t k = 0; k < i; k++) {
            other = verb_at(k);
            assert_string_not_equal(other->words, verb->words);
        }
    }
}

static void arguments_are_counted_as_the_usage_has_them(void **state)
{
    static const struct {
        const char *arguments;
        uint32_t least, most;
    } cases[] = {
        { "", 0, 0 },
        { "PLAYER", 1, 1 },
        { "PLAYER [MAIL]", 1, 2 },
        { "PATH..", 1, WORDS_MAX },
        { "[VERB..]", 0, WORDS_MAX },
        { "PLAYER OP_ID [CURRENCY=AMOUNT..] [--to PLAYER]", 2, WORDS_MAX },
        { "SHARD --from NODE --to NODE", 1, 1 },
        { "--player PLAYER | --all", 0, 0 },
        { "[--shards]", 0, 0 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct verb verb = { .words = "x", .arguments = cases[i].arguments };

        for (uint32_t count = 0; count <= WORDS_MAX; count++)
            assert_int_equal(verb_takes(&verb, count),
                             count >= cases[i].least && count <= cases[i].most);
    }
}

static const char *found(uint32_t count, const char *first, const char *second, const char *third)
{
    const char *words[] = { first, second, third };
    const struct verb *verb = verb_find(words, count);

    return verb != NULL ? verb->words : "";
}

static void a_verb_is_found_by_whole_words(void **state)
{
    (void)state;

    assert_string_equal(found(2, "ledger", "list", NULL), "ledger list");
    assert_string_equal(found(3, "ledger", "list", "42"), "ledger list");
    assert_string_equal(found(1, "status", NULL, NULL), "status");
    assert_string_equal(found(2, "status", "x", NULL), "status");
    assert_string_equal(found(1, "ledger", NULL, NULL), "");
    assert_string_equal(found(1, "led", NULL, NULL), "");
    assert_string_equal(found(1, "ledger list", NULL, NULL), "");
    assert_string_equal(found(1, "", NULL, NULL), "");
    assert_true(verb_family_exists("ledger"));
    assert_false(verb_family_exists("led"));
}

/* A directory may be called "list". */
static void of_two_verbs_that_match_the_one_that_takes_the_rest_counts(void **state)
{
    (void)state;

    assert_string_equal(found(2, "backup", "list", NULL), "backup");
    assert_string_equal(found(3, "backup", "list", "dir"), "backup list");
    assert_string_equal(found(2, "backup", "dir", NULL), "backup");
}

static void the_nearest_verb_is_named(void **state)
{
    static const struct {
        const char *words[3];
        const char *why; /* NULL: nothing is wrong with them. */
    } cases[] = {
        { { "stauts" }, "there is no verb 'stauts'; did you mean 'status'?" },
        { { "led" }, "there is no verb 'led'" },
        { { "hf_5ec4e7" }, "there is no verb 'hf_...'" },
        { { "--key=s3cret" }, "there is no verb '--key=...'" },
        { { "completion", "bsh" },
          "there is no verb 'completion bsh'; did you mean 'completion bash'?" },
        { { "backup", "lsit", "dir" },
          "there is no verb 'backup lsit'; did you mean 'backup list'?" },
        { { "ledger", "list" }, NULL }, /* Its usage is told. */
        { { "transfers", "transfer" }, NULL },
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
        char why[VERB_WHY_BYTES] = "";
        uint32_t count = 0;

        while (count < 3 && cases[i].words[count] != NULL)
            count++;
        assert_int_equal(verb_misspelt(cases[i].words, count, why), cases[i].why != NULL);
        assert_string_equal(why, cases[i].why != NULL ? cases[i].why : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_verb_is_in_the_manual),
        cmocka_unit_test(the_manual_tells_of_no_verb_that_is_not_there),
        cmocka_unit_test(the_manual_tells_which_verbs_an_option_is_of),
        cmocka_unit_test(the_manual_tells_of_no_option_that_is_not_there),
        cmocka_unit_test(options_of_one_flag_all_take_a_value_or_none_does),
        cmocka_unit_test(every_verb_says_what_it_is),
        cmocka_unit_test(arguments_are_counted_as_the_usage_has_them),
        cmocka_unit_test(a_verb_is_found_by_whole_words),
        cmocka_unit_test(of_two_verbs_that_match_the_one_that_takes_the_rest_counts),
        cmocka_unit_test(the_nearest_verb_is_named),
    };
    verb_table_set(verb_rows);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
