#include "client/cli/call/target_call.h"

#include <stdio.h>

#include "client/cli/console/answer.h"
#include "client/cli/console/options.h"

#define LIMIT_MAX 1000u

const struct command_option option_fresh = {
    .flag = "fresh",
    .meaning = "gather now, instead of what the router remembers",
};
const struct command_option option_window = {
    .flag = "window",
    .value = "WINDOW",
    .initial = "24h",
    .meaning = "24h, 7d or all",
};
const struct command_option option_limit = {
    .flag = "limit",
    .value = "N",
    .initial = "100",
    .meaning = "targets at most",
};

static const struct column count_columns[] = {
    { .title = "TARGET", .path = "targetId" },
    { .title = "COUNT", .path = "count", .otherwise = "0" },
    { .title = "AS OF MS", .path = "asOfFromMs" },
    { .title = "STALE", .path = "stale", .otherwise = "false" },
    { .title = NULL },
};
static const struct column top_columns[] = {
    { .title = "TARGET", .path = "targetId" },
    { .title = "COUNT", .path = "count" },
    { .title = NULL },
};

static const struct column rank_columns[] = {
    { .title = "RANK", .path = "rank", .otherwise = "-" },
    { .title = "COUNT", .path = "count", .otherwise = "-" },
    { .title = "OF THE HIGHEST", .path = "listed", .otherwise = "0" },
    { .title = "LAST COUNT", .path = "lastCount", .otherwise = "0" },
    { .title = NULL },
};

json_t *target_words(const struct arguments *arguments, uint32_t first)
{
    json_t *targets = json_array();

    for (uint32_t i = first; i < arguments->word_count; i++)
        json_array_append_new(targets, json_string(arguments->words[i]));
    return targets;
}

int target_rank_call(const struct arguments *arguments, const char *method, json_t *request)
{
    int code;

    json_object_set_new(request, "window", json_string(option_text(arguments, &option_window)));
    json_t *answer = call_json(arguments, method, request, &code);
    if (answer != NULL && wants_json(arguments)) {
        print_json(answer);
    } else if (answer != NULL) {
        json_t *rows = json_pack("[O]", answer);
        print_table(NULL, rows, rank_columns);
        json_decref(rows);
    }
    json_decref(answer);
    return code;
}

int target_counts_call(const struct arguments *arguments, const char *method, json_t *request)
{
    int code;

    json_object_set_new(request, "fresh", json_boolean(option_is_set(arguments, &option_fresh)));
    json_t *answer = call_json(arguments, method, request, &code);
    if (answer != NULL && wants_json(arguments))
        print_json(answer);
    else if (answer != NULL)
        print_table(NULL, json_object_get(answer, "counts"), count_columns);
    json_decref(answer);
    return code;
}

int target_top_call(const struct arguments *arguments, const char *method, json_t *request)
{
    uint32_t limit;
    int code;

    if (option_number(arguments, &option_limit, 1, LIMIT_MAX, &limit) != ERR_OK) {
        json_decref(request);
        return 2;
    }
    json_object_set_new(request, "window", json_string(option_text(arguments, &option_window)));
    json_object_set_new(request, "limit", json_integer((json_int_t)limit));
    json_t *answer = call_json(arguments, method, request, &code);
    if (answer != NULL && wants_json(arguments)) {
        print_json(answer);
    } else if (answer != NULL) {
        print_table(NULL, json_object_get(answer, "entries"), top_columns);
        if (json_is_true(json_object_get(answer, "stale")))
            printf("stale: as of %s ms, since some shard does not answer\n",
                   answer_text(answer, "asOfFromMs"));
    }
    json_decref(answer);
    return code;
}

int target_change_call(const struct arguments *arguments, const char *method, json_t *request,
                       const struct column *columns)
{
    const char *op_id = option_text(arguments, &option_op_id);
    int code;

    json_object_set_new(request, "opId", json_string(op_id));
    json_t *answer = call_json(arguments, method, request, &code);
    if (answer != NULL && wants_json(arguments)) {
        print_json(answer);
    } else if (answer != NULL) {
        json_t *rows = json_pack("[O]", answer);
        printf("operation %s\n", op_id);
        print_table(NULL, rows, columns);
        json_decref(rows);
    }
    json_decref(answer);
    return code;
}
