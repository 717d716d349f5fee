#include <stdio.h>

#include "client/cli/output.h"
#include "client/cli/verb.h"

int verb_call(const struct arguments *arguments)
{
    json_error_t why;
    int code;

    if (arguments->word_count < 2 || arguments->word_count > 3) {
        fprintf(stderr, "usage: holdfast call SERVICE/METHOD '{json}'\n");
        return 2;
    }
    const char *text = arguments->word_count == 3 ? arguments->words[2] : "{}";
    json_t *request = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(request)) {
        fprintf(stderr, "holdfast: the request is no JSON object: %s (at byte %d)\n", why.text,
                why.position);
        json_decref(request);
        return 2;
    }
    json_t *answer = call_json(arguments, arguments->words[1], request, &code);
    if (answer != NULL)
        print_json(answer);
    json_decref(answer);
    return code;
}
