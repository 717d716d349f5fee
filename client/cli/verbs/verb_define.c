/* define: what a team configures. docs/definitions.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"

static const struct command_option option_if_version = {
    .flag = "if-version",
    .value = "N",
    .meaning = "the current version must be this one; 0: there must be none",
};
static const struct command_option option_wait_ms = {
    .flag = "wait-ms",
    .value = "N",
    .initial = "0",
    .meaning = "wait so long for all shards to have it",
};
static const struct command_option option_kind = {
    .flag = "kind",
    .value = "KIND",
    .meaning = "currency, collection, counter, rate_rule, event_retention, documents or settings",
};
static const struct command_option option_deleted = {
    .flag = "deleted",
    .meaning = "also those that were deleted",
};

static const struct column columns[] = {
    { .title = "KIND", .path = "kind" },
    { .title = "NAME", .path = "name" },
    { .title = "VERSION", .path = "version" },
    { .title = "IN FORCE", .path = "inForce", .otherwise = "false" },
    { .title = "SHARDS LEFT", .path = "shardsLeft", .otherwise = "0" },
    { .title = "DELETED", .path = "deleted", .otherwise = "false" },
    { .title = "AUTHOR", .path = "author", .otherwise = "-" },
    { .title = "REASON", .path = "reason", .otherwise = "-" },
    { .title = NULL },
};
static const struct column version_columns[] = {
    { .title = "NUMBER", .path = "number" },
    { .title = "VERSION", .path = "version" },
    { .title = "MADE AT MS", .path = "madeAtMs" },
    { .title = "AUTHOR", .path = "author", .otherwise = "-" },
    { .title = "REASON", .path = "reason", .otherwise = "-" },
    { .title = "BODY OF", .path = "rolledBackTo", .otherwise = "-" },
    { .title = "DELETED", .path = "deleted", .otherwise = "false" },
    { .title = "CURRENT", .path = "current", .otherwise = "false" },
    { .title = NULL },
};
static const struct column change_columns[] = {
    { .title = "FIELD", .path = "field" },
    { .title = "BEFORE", .path = "before" },
    { .title = "AFTER", .path = "after" },
    { .title = NULL },
};

/* ---- changes ---- */
static json_t *change_of(const struct arguments *arguments)
{
    const char *if_version = option_text(arguments, &option_if_version);

    json_t *request = json_pack(
        "{s:s, s:s, s:s, s:s, s:b, s:I}", "kind", arguments->words[0], "name", arguments->words[1],
        "opId", option_text(arguments, &option_op_id), "reason",
        option_text(arguments, &option_reason), "dryRun", option_is_set(arguments, &option_dry_run),
        "waitMs", (json_int_t)strtoll(option_text(arguments, &option_wait_ms), NULL, 10));

    if (if_version[0] != 0)
        json_object_set_new(request, "ifVersion", json_string(if_version));
    return request;
}

/* Takes over `request`. */
static int change(const struct arguments *arguments, const char *method, json_t *request)
{
    int code = 0;
    json_t *answer = call_plain_json(arguments, method, request, &code);

    if (answer != NULL && wants_json(arguments)) {
        print_json(answer);
    } else if (answer != NULL) {
        json_t *rows = json_pack("[O]", json_object_get(answer, "definition"));
        if (json_is_true(json_object_get(answer, "unchanged")))
            printf("nothing changed: that is what stands\n");
        if (option_is_set(arguments, &option_dry_run))
            printf("nothing was made; it would be:\n");
        print_table(NULL, rows, columns);
        json_decref(rows);
    }
    json_decref(answer);
    return code;
}

static int put(const struct arguments *arguments)
{
    json_error_t why;
    json_t *fields = json_loads(arguments->words[2], 0, &why);
    json_t *request;

    if (!json_is_object(fields)) {
        fprintf(stderr, "holdfast: BODY: a JSON object, such as {\"maxBalance\":1000}%s%s\n",
                fields == NULL ? ": " : "", fields == NULL ? why.text : "");
        json_decref(fields);
        return 2;
    }
    request = change_of(arguments);
    json_object_set_new(request, "body", json_pack("{s:o}", arguments->words[0], fields));
    return change(arguments, "DefinitionService/PutDefinition", request);
}

static int rollback(const struct arguments *arguments)
{
    json_t *request = change_of(arguments);

    json_object_set_new(request, "version", json_string(arguments->words[2]));
    return change(arguments, "DefinitionService/RollbackDefinition", request);
}

static int delete_one(const struct arguments *arguments)
{
    return change(arguments, "DefinitionService/DeleteDefinition", change_of(arguments));
}

/* ---- looking ---- */
static json_t *name_of(const struct arguments *arguments)
{
    return json_pack("{s:s, s:s}", "kind", arguments->words[0], "name", arguments->words[1]);
}

static int get(const struct arguments *arguments)
{
    int code = 0;
    json_t *answer =
        call_plain_json(arguments, "DefinitionService/GetDefinition", name_of(arguments), &code);

    if (answer != NULL)
        print_json(answer);
    json_decref(answer);
    return code;
}

static int print_rows(const struct arguments *arguments, json_t *rows, const struct column *shown,
                      int code)
{
    if (rows != NULL && wants_json(arguments))
        print_json(rows);
    else if (rows != NULL)
        print_table(NULL, rows, shown);
    json_decref(rows);
    return code;
}

static int list(const struct arguments *arguments)
{
    int code = 0;
    json_t *request = json_pack("{s:s, s:b}", "kind", option_text(arguments, &option_kind),
                                "deleted", option_is_set(arguments, &option_deleted));
    json_t *rows =
        call_pages(arguments, "DefinitionService/ListDefinitions", "definitions", request, &code);

    return print_rows(arguments, rows, columns, code);
}

static int history(const struct arguments *arguments)
{
    int code = 0;
    json_t *rows = call_pages(arguments, "DefinitionService/ListDefinitionVersions", "versions",
                              name_of(arguments), &code);

    return print_rows(arguments, rows, version_columns, code);
}

static int diff(const struct arguments *arguments)
{
    int code = 0;
    json_t *request = name_of(arguments);

    if (arguments->word_count > 2)
        json_object_set_new(request, "fromVersion", json_string(arguments->words[2]));
    if (arguments->word_count > 3)
        json_object_set_new(request, "toVersion", json_string(arguments->words[3]));
    json_t *answer = call_json(arguments, "DefinitionService/DiffDefinitions", request, &code);

    if (answer != NULL && wants_json(arguments))
        print_json(answer);
    else if (answer != NULL)
        print_table(NULL, json_object_get(answer, "changes"), change_columns);
    json_decref(answer);
    return code;
}

#define OPTIONS_OF_DEFINE                                                                          \
    &option_if_version, &option_wait_ms, &option_dry_run, OPTIONS_OF_CHANGES, OPTIONS_OF_CALLS,    \
        OPTIONS_OF_OUTPUT

const struct verb verb_define[] = {
    {
        .words = "define put",
        .topic = VERB_TOPIC_API,
        .arguments = "KIND NAME BODY",
        .summary = "make a definition, or a new version of one",
        .details = "BODY is JSON: holdfast define put currency gold '{\"maxBalance\":1000}'",
        .options = VERB_OPTIONS(OPTIONS_OF_DEFINE),
        .run = put,
    },
    {
        .words = "define get",
        .topic = VERB_TOPIC_API,
        .arguments = "KIND NAME",
        .summary = "the current version, as JSON",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = get,
    },
    {
        .words = "define list",
        .topic = VERB_TOPIC_API,
        .arguments = "",
        .summary = "all definitions, and whether they are in force",
        .options = VERB_OPTIONS(&option_kind, &option_deleted, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = list,
    },
    {
        .words = "define history",
        .topic = VERB_TOPIC_API,
        .arguments = "KIND NAME",
        .summary = "its versions: who made them, when and why",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = history,
    },
    {
        .words = "define diff",
        .topic = VERB_TOPIC_API,
        .arguments = "KIND NAME [FROM] [TO]",
        .summary = "what differs between two versions",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = diff,
    },
    {
        .words = "define rollback",
        .topic = VERB_TOPIC_API,
        .arguments = "KIND NAME VERSION",
        .summary = "a new version with an earlier one's body",
        .options = VERB_OPTIONS(OPTIONS_OF_DEFINE),
        .run = rollback,
    },
    {
        .words = "define delete",
        .topic = VERB_TOPIC_API,
        .arguments = "KIND NAME",
        .summary = "a last version, which says that it is gone",
        .options = VERB_OPTIONS(OPTIONS_OF_DEFINE),
        .run = delete_one,
    },
    { .words = NULL },
};
