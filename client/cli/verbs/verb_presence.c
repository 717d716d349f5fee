/* presence: who is online. docs/presence.md. */
#include <stdio.h>

#include "client/cli/console/answer.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/call/target_call.h"
#include "client/cli/verb.h"

#define PAGE_MAX 1000u

static const struct command_option option_status = {
    .flag = "status",
    .value = "JSON",
    .meaning = "what others are shown of it, at most 1 KiB",
};
static const struct command_option option_ttl_ms = {
    .flag = "ttl-ms",
    .value = "MS",
    .meaning = "how long it is shown, 1000 to 86400000, unless it is set again",
};
static const struct command_option option_incarnation = {
    .flag = "incarnation",
    .value = "INCARNATION",
    .meaning = "the game server by which it lives, instead of --ttl-ms",
};

static const struct command_option option_most = {
    .flag = "limit",
    .value = "N",
    .initial = "100",
    .meaning = "players at most, 1 to 1000",
};

static const struct column connection_columns[] = {
    { .title = "PLAYER", .path = "playerId" },
    { .title = "CONNECTION", .path = "connection" },
    { .title = "STATUS", .path = "status" },
    { .title = "SERVER", .path = "incarnation" },
    { .title = "SET AT MS", .path = "setAtMs" },
    { .title = "EXPIRES AT MS", .path = "expiresAtMs" },
    { .title = NULL },
};
static const struct column online_columns[] = {
    { .title = "PLAYER", .path = "playerId" },
    { .title = "CONNECTIONS", .path = "connections" },
    { .title = "SET AT MS", .path = "lastSetAtMs" },
    { .title = NULL },
};
static const struct column written_columns[] = {
    { .title = "CONTEXT", .path = "written.context" },
    { .title = NULL },
};

/* A row for each connection. */
static json_t *rows_of(const json_t *results)
{
    json_t *rows = json_array();
    const json_t *result;
    size_t i, k;
    json_t *connection;

    json_array_foreach((json_t *)(uintptr_t)results, i, result)
    {
        const json_t *presence = json_object_get(json_object_get(result, "response"), "presence");

        json_array_foreach(json_object_get(presence, "connections"), k, connection)
        {
            json_t *row = json_copy(connection);

            json_object_set(row, "playerId", json_object_get(presence, "playerId"));
            json_array_append_new(rows, row);
        }
    }
    return rows;
}

/* What could not be read, in words; how many. */
static uint32_t tell_failures(const struct arguments *arguments, const json_t *results)
{
    uint32_t failed = 0;
    const json_t *result;
    size_t i;

    json_array_foreach((json_t *)(uintptr_t)results, i, result)
    {
        const json_t *error = json_object_get(result, "error");

        if (error == NULL || i >= arguments->word_count)
            continue;
        fprintf(stderr, "%s: %s\n", arguments->words[i], answer_text(error, "message"));
        failed++;
    }
    return failed;
}

static int get(const struct arguments *arguments)
{
    json_t *requests = json_array();
    int code;

    for (uint32_t i = 0; i < arguments->word_count; i++)
        json_array_append_new(requests, json_pack("{s:s}", "playerId", arguments->words[i]));
    json_t *answer = call_json(arguments, "PresenceService/BatchGetPresence",
                               json_pack("{s:o}", "requests", requests), &code);

    if (answer == NULL)
        return code;
    const json_t *results = json_object_get(answer, "results");

    if (wants_json(arguments)) {
        print_json(answer);
    } else {
        json_t *rows = rows_of(results);

        print_table(NULL, rows, connection_columns);
        json_decref(rows);
    }
    if (tell_failures(arguments, results) > 0)
        code = 1;
    json_decref(answer);
    return code;
}

static void print_online(const struct arguments *arguments, const json_t *answer)
{
    const char *next = answer_text(answer, "nextCursor");

    print_table(NULL, json_object_get(answer, "players"), online_columns);
    if (option_text(arguments, &option_cursor)[0] == 0)
        printf("online: %s\n",
               answer_text(answer, "count")[0] != 0 ? answer_text(answer, "count") : "0");
    if (next[0] != 0)
        printf("more: --cursor %s\n", next);
}

/* The exit code is 1 if players are missing. */
static int online(const struct arguments *arguments)
{
    json_t *request = json_object();
    uint32_t limit;
    int code;

    if (option_number(arguments, &option_most, 1, PAGE_MAX, &limit) != ERR_OK) {
        json_decref(request);
        return 2;
    }
    json_object_set_new(request, "pageSize", json_integer((json_int_t)limit));
    json_object_set_new(request, "cursor", json_string(option_text(arguments, &option_cursor)));
    json_t *answer = call_json(arguments, "PresenceService/ListOnline", request, &code);

    if (answer == NULL)
        return code;
    if (wants_json(arguments))
        print_json(answer);
    else
        print_online(arguments, answer);
    if (json_is_true(json_object_get(answer, "stale"))) {
        fprintf(stderr, "some shards did not answer: their players are missing\n");
        code = 1;
    }
    json_decref(answer);
    return code;
}

/* The router judges all that is given: its message names the limit. */
static int set(const struct arguments *arguments)
{
    json_t *request =
        json_pack("{s:s,s:s}", "playerId", arguments->words[0], "connection", arguments->words[1]);

    json_object_set_new(request, "status", json_string(option_text(arguments, &option_status)));
    json_object_set_new(request, "incarnation",
                        json_string(option_text(arguments, &option_incarnation)));
    if (option_text(arguments, &option_ttl_ms)[0] != 0)
        json_object_set_new(request, "ttlMs", json_string(option_text(arguments, &option_ttl_ms)));
    return target_change_call(arguments, "PresenceService/SetPresence", request, written_columns);
}

static int clear(const struct arguments *arguments)
{
    json_t *request = json_pack("{s:s}", "playerId", arguments->words[0]);

    if (arguments->word_count > 1)
        json_object_set_new(request, "connection", json_string(arguments->words[1]));
    return target_change_call(arguments, "PresenceService/ClearPresence", request, written_columns);
}

const struct verb verb_presence[] = {
    {
        .words = "presence get",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER..",
        .summary = "the connections of players who are online",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = get,
    },
    {
        .words = "presence online",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "",
        .summary = "how many players are online, and who was set last",
        .options = VERB_OPTIONS(&option_most, &option_cursor, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = online,
    },
    {
        .words = "presence set",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER CONNECTION",
        .summary = "set one connection of a player",
        .options = VERB_OPTIONS(&option_status, &option_ttl_ms, &option_incarnation, &option_op_id,
                                OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = set,
    },
    {
        .words = "presence clear",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER [CONNECTION]",
        .summary = "take one connection of a player away, or all",
        .options = VERB_OPTIONS(&option_op_id, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = clear,
    },
    { .words = NULL },
};
