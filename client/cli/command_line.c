#include "client/cli/command_line.h"

#include <stdio.h>
#include <string.h>

#include "client/cli/help.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb_table.h"
#include "runtime/base/check.h"
#include "runtime/base/nearest.h"

/* Its value is not repeated: it may be a secret. */
static void refuse_unknown(struct slice flag, char ret_why[COMMAND_WHY_BYTES])
{
    const struct command_option *options[OPTIONS_MAX];
    size_t count = options_gather(options);
    struct nearest nearest;
    char shown[NEAREST_SHOWN_BYTES], hint[NEAREST_HINT_BYTES], meant[NEAREST_BYTES_MAX + 3] = "";

    nearest_init(&nearest, flag);
    for (size_t i = 0; i < count; i++)
        nearest_offer_text(&nearest, options[i]->flag);
    nearest_offer_text(&nearest, "help");
    nearest_offer_text(&nearest, "version");
    if (nearest.name.size > 0)
        snprintf(meant, sizeof meant, "--%.*s", (int)nearest.name.size,
                 (const char *)nearest.name.data);
    snprintf(ret_why, COMMAND_WHY_BYTES, "there is no option --%s%s", nearest_show(flag, shown),
             nearest_hint(slice_from_text(meant), hint));
}

/* One "--flag value" or "--flag=value"; returns how many words it took, 0 on error. */
static int take_option(struct arguments *arguments, const char *flag, const char *next,
                       char ret_why[COMMAND_WHY_BYTES])
{
    const char *equals = strchr(flag, '=');
    size_t size = equals != NULL ? (size_t)(equals - flag) : strlen(flag);
    struct slice name = { (const uint8_t *)flag, size };
    const struct command_option *option = option_find(name);
    const char *text = equals != NULL ? equals + 1 : next;

    if (option == NULL) {
        refuse_unknown(name, ret_why);
        return 0;
    }
    if (option->value == NULL && equals != NULL) {
        snprintf(ret_why, COMMAND_WHY_BYTES, "--%s takes no value", option->flag);
        return 0;
    }
    if (option->value != NULL && text == NULL) {
        snprintf(ret_why, COMMAND_WHY_BYTES, "--%s wants a value: %s", option->flag, option->value);
        return 0;
    }
    /* There is room for every flag once. */
    CHECK(arguments_give(arguments, option->flag, option->value != NULL ? text : "") == ERR_OK);
    return option->value != NULL && equals == NULL ? 2 : 1;
}

static err settle_output(struct arguments *arguments, char ret_why[COMMAND_WHY_BYTES])
{
    if (option_is_set(arguments, &option_json))
        return arguments_give(arguments, option_output.flag, "json");
    const char *output = option_text(arguments, &option_output);
    if (strcmp(output, "table") == 0 || strcmp(output, "json") == 0)
        return ERR_OK;
    struct nearest nearest;
    char shown[NEAREST_SHOWN_BYTES], hint[NEAREST_HINT_BYTES];

    nearest_init(&nearest, slice_from_text(output));
    nearest_offer_text(&nearest, "table");
    nearest_offer_text(&nearest, "json");
    snprintf(ret_why, COMMAND_WHY_BYTES, "--output is table or json, not '%s'%s",
             nearest_show(slice_from_text(output), shown), nearest_hint(nearest.name, hint));
    return ERR_INVALID;
}

err command_line_parse(int argc, char *const *argv, struct arguments *ret_arguments,
                       char ret_why[COMMAND_WHY_BYTES])
{
    struct arguments arguments = { 0 };

    for (int i = 1; i < argc;) {
        const char *word = argv[i];
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        int taken = 1;
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
            arguments.help = true;
        else if (strcmp(word, "--version") == 0)
            arguments.version = true;
        else if (strcmp(word, "-o") == 0)
            taken = take_option(&arguments, option_output.flag, next, ret_why);
        else if (strncmp(word, "--", 2) == 0)
            taken = take_option(&arguments, word + 2, next, ret_why);
        else if (arguments.word_count == WORDS_MAX) {
            snprintf(ret_why, COMMAND_WHY_BYTES, "too many words: at most %u", WORDS_MAX);
            return ERR_INVALID;
        } else
            arguments.words[arguments.word_count++] = word;
        if (taken == 0)
            return ERR_INVALID;
        i += taken;
    }
    err e = settle_output(&arguments, ret_why);
    if (e == ERR_OK)
        *ret_arguments = arguments;
    return e;
}

static bool is_common(const char *flag)
{
    const struct command_option *option = option_find(slice_from_text(flag));

    return option != NULL && option->common;
}

/* A verb would drop such an option in silence: a drain with `--dry-run` would be carried out. */
static int refuse_foreign(const struct arguments *arguments, const char *flag)
{
    const struct verb *verb = arguments->verb;
    char hint[NEAREST_HINT_BYTES];
    struct nearest nearest;

    nearest_init(&nearest, slice_from_text(flag));
    for (size_t i = 0; verb->options[i] != NULL; i++)
        nearest_offer_text(&nearest, verb->options[i]->flag);
    fprintf(stderr, "holdfast: %s does not take --%s%s (try holdfast %s --help)\n", verb->words,
            flag, nearest_hint(nearest.name, hint), verb->words);
    return 2;
}

/* A verb that takes --op-id has one: the operator's, or a fresh one. */
static int run_verb(struct arguments *arguments)
{
    bool has_op_id = verb_has_option(arguments->verb, option_op_id.flag);
    char fresh[37];

    if (has_op_id && option_text(arguments, &option_op_id)[0] == '\0') {
        client_op_id(fresh);
        CHECK(arguments_give(arguments, option_op_id.flag, fresh) == ERR_OK);
    }
    int code = arguments->verb->run(arguments);

    if (has_op_id && code == EXIT_UNKNOWN)
        op_id_say(arguments);
    return code;
}

int command_line_run(struct arguments *arguments)
{
    const struct verb *verb = verb_find(arguments->words, arguments->word_count);
    char why[VERB_WHY_BYTES];

    if (verb_misspelt(arguments->words, arguments->word_count, why)) {
        fprintf(stderr, "holdfast: %s (try holdfast --help)\n", why);
        return 2;
    }
    if (verb == NULL) {
        help_print_usages(stderr, arguments->words[0]);
        return 2;
    }
    arguments->verb = verb;
    arguments_skip_words(arguments, verb_word_count(verb));
    for (uint32_t i = 0; i < arguments->given_count; i++) {
        const char *flag = arguments->given[i].flag;
        if (!verb_has_option(verb, flag) && !is_common(flag))
            return refuse_foreign(arguments, flag);
    }
    if (!verb_takes(verb, arguments->word_count))
        return refuse_usage(arguments);
    return run_verb(arguments);
}
