/* holdfast help: all verbs, or one. */
#include "client/cli/help.h"
#include "client/cli/verb.h"

static int help(const struct arguments *arguments)
{
    if (arguments->word_count > 0)
        return help_print_verb(arguments->words, arguments->word_count);
    help_print();
    return 0;
}

const struct verb verb_help[] = {
    {
        .words = "help",
        .topic = VERB_TOPIC_SHELL,
        .arguments = "[VERB..]",
        .summary = "all verbs, or what one does",
        .options = VERB_OPTIONS(NULL),
        .run = help,
    },
    { .words = NULL },
};
