#include "client/cli/arguments.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/nearest.h"
#include "runtime/codec/utf8.h"

#define SHOWN_BYTES 65u /* At most 64 bytes of what was typed. */

static const struct command_option options[] = {
#define ARGUMENT_ROW(name, flag, value, initial, verbs, meaning)                                   \
    { flag, value, initial, verbs, meaning, offsetof(struct arguments, name) },
#define FLAG_ROW(name, flag, verbs, meaning)                                                       \
    { flag, NULL, NULL, verbs, meaning, offsetof(struct arguments, name) },
    ARGUMENT_TABLE(ARGUMENT_ROW) FLAG_TABLE(FLAG_ROW)
#undef ARGUMENT_ROW
#undef FLAG_ROW
};

const struct command_option *command_option_all(size_t *ret_count)
{
    *ret_count = ARRAY_SIZE(options);
    return options;
}

static const char **field(struct arguments *arguments, const struct command_option *option)
{
    return (const char **)(void *)((char *)arguments + option->offset);
}

static void take_environment(const char **text, const char *name)
{
    const char *value = getenv(name);

    if (value != NULL && value[0] != 0)
        *text = value;
}

static void set_defaults(struct arguments *arguments)
{
    *arguments = (struct arguments){ 0 };
    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        if (options[i].value != NULL)
            *field(arguments, &options[i]) = options[i].initial;
    }
    take_environment(&arguments->endpoint, "HOLDFAST_ENDPOINT");
    take_environment(&arguments->key, "HOLDFAST_KEY");
    take_environment(&arguments->ca_file, "HOLDFAST_CA");
    take_environment(&arguments->cluster, "HOLDFAST_CLUSTER");
    take_environment(&arguments->etcd, "HOLDFAST_ETCD");
    take_environment(&arguments->etcd_ca, "HOLDFAST_ETCD_CA");
    take_environment(&arguments->etcd_cert, "HOLDFAST_ETCD_CERT");
    take_environment(&arguments->etcd_key, "HOLDFAST_ETCD_KEY");
}

static const struct command_option *find(const char *flag, size_t size)
{
    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        if (strlen(options[i].flag) == size && strncmp(options[i].flag, flag, size) == 0)
            return &options[i];
    }
    return NULL;
}

/* Its value is not repeated: it may be a secret. */
static void refuse_unknown(struct slice flag, char ret_why[256])
{
    struct nearest nearest;
    char shown[SHOWN_BYTES];

    nearest_init(&nearest, flag);
    for (size_t i = 0; i < ARRAY_SIZE(options); i++)
        nearest_offer_text(&nearest, options[i].flag);
    nearest_offer_text(&nearest, "help");
    nearest_offer_text(&nearest, "version");
    utf8_snippet(shown, sizeof shown, flag);
    if (nearest.name.size > 0)
        snprintf(ret_why, 256, "there is no option --%s; did you mean --%.*s?", shown,
                 (int)nearest.name.size, (const char *)nearest.name.data);
    else
        snprintf(ret_why, 256, "there is no option --%s", shown);
}

/* One "--flag value" or "--flag=value"; returns how many words it took, 0 on error. */
static int take_option(struct arguments *arguments, const char *flag, const char *next,
                       char ret_why[256])
{
    const char *equals = strchr(flag, '=');
    size_t size = equals != NULL ? (size_t)(equals - flag) : strlen(flag);
    const struct command_option *option = find(flag, size);

    if (option == NULL) {
        refuse_unknown((struct slice){ (const uint8_t *)flag, size }, ret_why);
        return 0;
    }
    if (option->value == NULL && equals != NULL) {
        snprintf(ret_why, 256, "--%s takes no value", option->flag);
        return 0;
    }
    if (option->value == NULL) {
        *(bool *)(void *)((char *)arguments + option->offset) = true;
        return 1;
    }
    if (equals == NULL && next == NULL) {
        snprintf(ret_why, 256, "--%s wants a value: %s", option->flag, option->value);
        return 0;
    }
    *field(arguments, option) = equals != NULL ? equals + 1 : next;
    return equals != NULL ? 1 : 2;
}

err arguments_parse(int argc, char *const *argv, struct arguments *ret_arguments, char ret_why[256])
{
    struct arguments arguments;

    set_defaults(&arguments);
    for (int i = 1; i < argc;) {
        const char *word = argv[i];
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        int taken = 1;
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
            arguments.help = true;
        else if (strcmp(word, "--version") == 0)
            arguments.version = true;
        else if (strcmp(word, "-o") == 0)
            taken = take_option(&arguments, "output", next, ret_why);
        else if (strncmp(word, "--", 2) == 0)
            taken = take_option(&arguments, word + 2, next, ret_why);
        else if (arguments.word_count == WORDS_MAX) {
            snprintf(ret_why, 256, "too many words: at most %u", WORDS_MAX);
            return ERR_INVALID;
        } else
            arguments.words[arguments.word_count++] = word;
        if (taken == 0)
            return ERR_INVALID;
        i += taken;
    }
    if (arguments.json)
        arguments.output = "json";
    if (strcmp(arguments.output, "table") != 0 && strcmp(arguments.output, "json") != 0) {
        char shown[SHOWN_BYTES];
        utf8_snippet(shown, sizeof shown, slice_from_text(arguments.output));
        snprintf(ret_why, 256, "--output is table or json, not '%s'", shown);
        return ERR_INVALID;
    }
    *ret_arguments = arguments;
    return ERR_OK;
}

err argument_number(const char *flag, const char *text, uint32_t min, uint32_t max,
                    uint32_t *ret_number)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != 0 || number < min || number > max) {
        char shown[SHOWN_BYTES];
        utf8_snippet(shown, sizeof shown, slice_from_text(text));
        fprintf(stderr, "holdfast: --%s is a number from %u to %u, not '%s'\n", flag, min, max,
                shown);
        return ERR_INVALID;
    }
    *ret_number = (uint32_t)number;
    return ERR_OK;
}

static void print_option(const char *left, const char *verbs, const char *meaning)
{
    printf("  %-24s %s%s%s", left, verbs, verbs[0] != 0 ? ": " : "", meaning);
}

void arguments_print_options(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        const struct command_option *option = &options[i];
        char left[64];

        snprintf(left, sizeof left, "--%s%s%s", option->flag, option->value != NULL ? " " : "",
                 option->value != NULL ? option->value : "");
        print_option(left, option->verbs, option->meaning);
        if (option->initial != NULL && option->initial[0] != 0)
            printf(" [%s]", option->initial);
        putchar('\n');
    }
    printf("  %-24s %s\n  %-24s %s\n", "--help, -h", "this text", "--version", "print the version");
}
