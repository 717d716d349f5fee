/* holdfast call: any method of the API, in plain JSON (docs/json.md). The router names the nearest
 * method, field or currency. */
#include <stdio.h>

#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"

static int call(const struct arguments *arguments)
{
    const char *text = arguments->word_count == 2 ? arguments->words[1] : "{}";
    json_error_t why;
    int code;

    json_t *request = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(request)) {
        fprintf(stderr, "holdfast: the request is no JSON object: %s (at byte %d)\n", why.text,
                why.position);
        json_decref(request);
        return 2;
    }
    json_t *answer = call_plain_json(arguments, arguments->words[0], request, &code);
    if (answer != NULL)
        print_json(answer);
    json_decref(answer);
    return code;
}

const struct verb verb_call[] = {
    {
        .words = "call",
        .topic = VERB_TOPIC_API,
        .arguments = "SERVICE/METHOD [JSON]",
        .summary = "any method of the API",
        .details = "holdfast call LedgerService/GetBalances '{\"playerId\": \"42\"}'",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, &option_output),
        .run = call,
    },
    { .words = NULL },
};
