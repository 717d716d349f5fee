/* settings: what game servers read of a team's definitions. docs/settings.md. */
#include <stdio.h>

#include "client/cli/console/answer.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"

#define WAIT_MS 30000

/* A later version than `after`, or another number than its, within WAIT_MS and --deadline-ms. */
static json_t *ask(const struct arguments *arguments, const json_t *after, int *ret_code)
{
    json_t *request =
        json_pack("{s:s, s:I, s:I, s:i}", "name", arguments->words[0], "ifVersionAbove",
                  (json_int_t)answer_number(after, "version"), "ifNumber",
                  (json_int_t)answer_number(after, "number"), "waitMs", WAIT_MS);

    return call_plain_json(arguments, "DefinitionService/GetSettings", request, ret_code);
}

static int get(const struct arguments *arguments)
{
    int code = 0;
    json_t *answer = ask(arguments, NULL, &code);

    if (answer != NULL)
        print_json(answer);
    json_decref(answer);
    return code;
}

static int watch(const struct arguments *arguments)
{
    json_t *stands = NULL, *answer;
    int code = 0;

    while (!output_is_lost() && (answer = ask(arguments, stands, &code)) != NULL) {
        if (json_is_true(json_object_get(answer, "unchanged"))) {
            json_decref(answer);
            continue;
        }
        json_dumpf(answer, stdout, JSON_COMPACT);
        putchar('\n');
        (void)fflush(stdout);
        json_decref(stands);
        stands = answer;
    }
    json_decref(stands);
    return code;
}

const struct verb verb_settings[] = {
    {
        .words = "settings get",
        .topic = VERB_TOPIC_API,
        .arguments = "NAME",
        .summary = "what game servers are told, as JSON",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = get,
    },
    {
        .words = "settings watch",
        .topic = VERB_TOPIC_API,
        .arguments = "NAME",
        .summary = "that, and each later version as it comes: a line of JSON each",
        .details = "It ends with an error once the settings are deleted, or while no router "
                   "answers within --deadline-ms.",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS),
        .run = watch,
    },
    { .words = NULL },
};
