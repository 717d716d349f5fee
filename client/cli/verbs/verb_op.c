#include <stdio.h>

#include "client/cli/console/options.h"
#include "client/cli/console/outcome.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"

static const struct command_option option_seal = {
    .flag = "seal",
    .meaning = "what has not been carried out never will be",
};

static int fresh(const struct arguments *arguments)
{
    char op_id[37];

    (void)arguments;
    client_op_id(op_id);
    puts(op_id);
    return 0;
}

static json_t *request_of(const struct arguments *arguments)
{
    return json_pack("{s:s, s:s}", "entity", arguments->words[0], "opId", arguments->words[1]);
}

/* Takes over `request`. */
static int ask(const struct arguments *arguments, const char *name, json_t *request)
{
    bool raw = wants_json(arguments);
    struct buf text = { 0 };
    int code;
    json_t *answer = raw ? call_json(arguments, name, request, &code)
                         : call_plain_json(arguments, name, request, &code);

    if (answer != NULL && raw) {
        print_json(answer);
    } else if (answer != NULL) {
        outcome_format(json_object_get(answer, "operation"), &text);
        fwrite(text.data, 1, text.size, stdout);
    }
    buf_deinit(&text);
    json_decref(answer);
    return code;
}

static int get(const struct arguments *arguments)
{
    return ask(arguments, "OperationService/GetOperation", request_of(arguments));
}

static int resolve(const struct arguments *arguments)
{
    json_t *request = request_of(arguments);

    json_object_set_new(request, "seal", json_boolean(option_is_set(arguments, &option_seal)));
    return ask(arguments, "OperationService/ResolveOperation", request);
}

const struct verb verb_op[] = {
    {
        .words = "op new",
        .topic = VERB_TOPIC_API,
        .arguments = "",
        .summary = "a fresh op_id, a UUIDv7",
        .options = VERB_OPTIONS(NULL),
        .run = fresh,
    },
    {
        .words = "op get",
        .topic = VERB_TOPIC_API,
        .arguments = "ENTITY OP_ID",
        .summary = "what became of an operation",
        .details = "ENTITY has its kind before it: player:42",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = get,
    },
    {
        .words = "op resolve",
        .topic = VERB_TOPIC_API,
        .arguments = "ENTITY OP_ID",
        .summary = "settle an operation; --seal: for ever",
        .details = "ENTITY has its kind before it: player:42",
        .options = VERB_OPTIONS(&option_seal, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = resolve,
    },
    { .words = NULL },
};
