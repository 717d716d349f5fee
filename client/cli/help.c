#include "client/cli/help.h"

#include <string.h>

#include "client/cli/verb_table.h"
#include "runtime/base/check.h"

#define USAGE_WIDTH  35
#define OPTION_WIDTH 24

static void print_row(const struct verb *verb)
{
    struct buf usage = { 0 };

    buf_printf(&usage, "holdfast %s%s%s", verb->words, verb->arguments[0] != 0 ? " " : "",
               verb->arguments);
    printf("  %-*.*s%s%s\n", USAGE_WIDTH, (int)usage.size, (const char *)usage.data,
           usage.size < USAGE_WIDTH ? " " : "   ", verb->summary);
    buf_deinit(&usage);
}

/* Whether "--flag" stands in what follows the verb. */
static bool is_in_arguments(const struct verb *verb, const char *flag)
{
    size_t size = strlen(flag);

    for (const char *at = strstr(verb->arguments, "--"); at != NULL; at = strstr(at + 2, "--")) {
        if (strncmp(at + 2, flag, size) == 0 && strchr(" ]", at[2 + size]) != NULL)
            return true;
    }
    return false;
}

static void print_usage(FILE *to, const char *start, const struct verb *verb)
{
    fprintf(to, "%s holdfast %s%s%s", start, verb->words, verb->arguments[0] != 0 ? " " : "",
            verb->arguments);
    for (size_t i = 0; verb->options[i] != NULL; i++) {
        const struct command_option *option = verb->options[i];

        if (!option->common && !is_in_arguments(verb, option->flag))
            fprintf(to, " [--%s%s%s]", option->flag, option->value != NULL ? " " : "",
                    option->value != NULL ? option->value : "");
    }
    fputc('\n', to);
}

static void print_option(const struct command_option *option)
{
    char left[64];

    snprintf(left, sizeof left, "--%s%s%s", option->flag, option->value != NULL ? " " : "",
             option->value != NULL ? option->value : "");
    printf("  %-*s %s", OPTION_WIDTH, left, option->meaning);
    if (option->environment != NULL)
        printf("; also %s", option->environment);
    if (option->initial != NULL && option->initial[0] != 0)
        printf(" [%s]", option->initial);
    putchar('\n');
}

void help_print(void)
{
    static const char *const titles[] = {
#define VERB_TOPIC_TITLE(name, title) [VERB_TOPIC_##name] = (title),
        VERB_TOPIC_TABLE(VERB_TOPIC_TITLE)
#undef VERB_TOPIC_TITLE
    };
    const struct command_option *options[OPTIONS_MAX];
    const struct verb *verb;

    printf("holdfast: a player-state store for game servers\n");
    for (size_t topic = 0; topic < VERB_TOPICS; topic++) {
        printf("\n%s:\n", titles[topic]);
        for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
            if (verb->topic == topic)
                print_row(verb);
        }
    }
    printf("\nOptions of most verbs:\n");
    size_t count = options_gather(options);
    for (size_t i = 0; i < count; i++) {
        if (options[i]->common)
            print_option(options[i]);
    }
    printf("  %-*s %s\n  %-*s %s\n", OPTION_WIDTH, "--help, -h", "this text, or that of the verb",
           OPTION_WIDTH, "--version", "print the version");
    printf("\nholdfast VERB --help tells of one verb, with its own options.\n"
           "Exit codes: 0 done, 1 refused or failed, 2 used wrongly, 3 outcome unknown.\n");
}

static void print_options(const struct verb *verb, bool common, const char *title)
{
    bool titled = false;

    for (size_t i = 0; verb->options[i] != NULL; i++) {
        if (verb->options[i]->common != common)
            continue;
        if (!titled)
            printf("\n%s:\n", title);
        titled = true;
        print_option(verb->options[i]);
    }
}

static void print_verb(const struct verb *verb)
{
    print_usage(stdout, "usage:", verb);
    printf("%s\n", verb->summary);
    if (verb->details != NULL)
        printf("\n%s\n", verb->details);
    print_options(verb, false, "Options");
    print_options(verb, true, "Options of most verbs");
}

/* Not one of them alone, though one ("backup") may have this word for its whole name. */
static void print_family(const char *word)
{
    const struct verb *verb;

    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        if (verb_begins_with(verb, word))
            print_row(verb);
    }
    printf("\nholdfast %s .. --help tells of one of them, with its options.\n", word);
}

static uint32_t family_size(const char *word)
{
    const struct verb *verb;
    uint32_t count = 0;

    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++)
        count += verb_begins_with(verb, word);
    return count;
}

int help_print_verb(const char *const *words, uint32_t count)
{
    const struct verb *verb = verb_named(words, count);
    char why[VERB_WHY_BYTES];

    CHECK(count > 0);
    /* Of its arguments, which may be left out here, nothing is said. */
    if (verb == NULL && verb_misspelt(words, count, why)) {
        fprintf(stderr, "holdfast: %s (try holdfast --help)\n", why);
        return 2;
    }
    if (verb != NULL && (verb_word_count(verb) == 2 || family_size(words[0]) == 1)) {
        print_verb(verb);
    } else {
        print_family(words[0]);
        /* "backup" is a verb too. */
        if (verb != NULL) {
            putchar('\n');
            print_verb(verb);
        }
    }
    return 0;
}

void help_print_usages(FILE *to, const char *word)
{
    const char *start = "usage:";
    const struct verb *verb;

    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        if (!verb_begins_with(verb, word))
            continue;
        print_usage(to, start, verb);
        start = "      ";
    }
}

int refuse_usage(const struct arguments *arguments)
{
    CHECK(arguments->verb != NULL);
    print_usage(stderr, "usage:", arguments->verb);
    return 2;
}
