#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/console/answer.h"
#include "client/cli/console/clock.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"
#include "client/sdk/client.h"
#include "runtime/base/check.h"

#define PAGE_SIZE 200

static const struct command_option option_grace_ms = {
    .flag = "grace-ms",
    .value = "MS",
    .meaning = "how long it can be undone; the default is 7 days",
};

static const char *const states[] = {
    "never erased", "being taken out of counts",
    "erased",       "restored; being put back into counts",
    "restored",     "being purged",
    "purged",
};
static const char *const state_names[] = {
    "",
    "ERASURE_STATE_WITHDRAWING",
    "ERASURE_STATE_WITHDRAWN",
    "ERASURE_STATE_RESTORING",
    "ERASURE_STATE_RESTORED",
    "ERASURE_STATE_PURGING",
    "ERASURE_STATE_PURGED",
};

static const char *state_text(const json_t *erasure)
{
    for (size_t i = 1; i < ARRAY_SIZE(states); i++) {
        if (strcmp(state_names[i], answer_text(erasure, "state")) == 0)
            return states[i];
    }
    return states[0];
}

static void print_erasure(const struct arguments *arguments, const json_t *answer)
{
    const json_t *erasure = json_object_get(answer, "erasure");
    uint64_t purge_at_ms = answer_number(erasure, "purgeAtMs");
    char when[UTC_TEXT_BYTES];

    if (wants_json(arguments)) {
        print_json(answer);
        return;
    }
    printf("%s: %s", arguments->words[0], state_text(erasure));
    if (answer_number(erasure, "number") > 0)
        printf(", erasure %s, %s rows", answer_text(erasure, "number"),
               answer_text(erasure, "rowsDone")[0] != '\0' ? answer_text(erasure, "rowsDone")
                                                           : "0");
    if (answer_number(erasure, "endedAtMs") > 0)
        printf(", %s", utc_text(answer_number(erasure, "endedAtMs"), when));
    else if (purge_at_ms > 0)
        printf(", to be purged from %s on", utc_text(purge_at_ms, when));
    putchar('\n');
}

/* Takes `request`. */
static int change(const struct arguments *arguments, const char *method, json_t *request)
{
    int code;

    json_object_set_new(request, "playerId", json_string(arguments->words[0]));
    json_object_set_new(request, "opId", json_string(option_text(arguments, &option_op_id)));
    json_object_set_new(request, "authority", json_string("system:admin"));
    json_t *answer = call_json(arguments, method, request, &code);
    if (answer != NULL)
        print_erasure(arguments, answer);
    json_decref(answer);
    return code;
}

static int erase(const struct arguments *arguments)
{
    const char *text = option_text(arguments, &option_grace_ms);
    json_t *request = json_object();

    if (text[0] != '\0') {
        char *end;
        long long grace_ms = strtoll(text, &end, 10);
        if (*end != '\0') {
            fprintf(stderr, "holdfast: --grace-ms wants a number of milliseconds, not \"%s\"\n",
                    text);
            json_decref(request);
            return 2;
        }
        json_object_set_new(request, "graceMs", json_integer(grace_ms));
    }
    return change(arguments, "ErasureService/ErasePlayer", request);
}

static int undo(const struct arguments *arguments)
{
    return change(arguments, "ErasureService/RestorePlayer", json_object());
}

static int status(const struct arguments *arguments)
{
    int code;
    json_t *answer = call_json(arguments, "ErasureService/GetErasure",
                               json_pack("{s:s}", "playerId", arguments->words[0]), &code);

    if (answer != NULL)
        print_erasure(arguments, answer);
    json_decref(answer);
    return code;
}

/* A line of JSON for each thing that is kept; then one that says as of when, of the last page. */
static int export(const struct arguments *arguments)
{
    char cursor[1024] = "";
    int code;

    do {
        const json_t *row;
        size_t i;
        json_t *page = call_plain_json(arguments, "ErasureService/ExportPlayer",
                                       json_pack("{s:s, s:i, s:s}", "playerId", arguments->words[0],
                                                 "pageSize", PAGE_SIZE, "cursor", cursor),
                                       &code);
        if (page == NULL)
            return code;
        json_array_foreach(json_object_get(page, "rows"), i, row)
        {
            json_dumpf(row, stdout, JSON_COMPACT);
            putchar('\n');
        }
        (void)snprintf(cursor, sizeof cursor, "%s", answer_text(page, "nextCursor"));
        json_object_del(page, "rows");
        if (cursor[0] == '\0') {
            json_dumpf(page, stdout, JSON_COMPACT);
            putchar('\n');
        }
        json_decref(page);
    } while (cursor[0] != '\0' && !output_is_lost());
    return 0;
}

const struct verb verb_erase[] = {
    {
        .words = "player export",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER",
        .summary = "what is kept of a player in favourites and counters, as lines of JSON",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS),
        .run = export,
    },
    {
        .words = "erase player",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER [--grace-ms MS]",
        .summary = "erase a player from favourites, counters and documents",
        .options =
            VERB_OPTIONS(&option_grace_ms, &option_op_id, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = erase,
    },
    {
        .words = "erase undo",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER",
        .summary = "undo that, before the purge begins",
        .options = VERB_OPTIONS(&option_op_id, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = undo,
    },
    {
        .words = "erase status",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER",
        .summary = "how far a player is erased",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = status,
    },
    { .words = NULL },
};
