/* clock: what each member of a shard has of its documents. docs/documents.md. */
#include <stdio.h>

#include "client/cli/console/answer.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"

static const struct column member_columns[] = {
    { .title = "MEMBER", .path = "replicaId" },
    { .title = "STATE", .path = "state" },
    { .title = "ERA", .path = "era", .otherwise = "0" },
    { .title = "APART MS", .path = "apartMs", .otherwise = "0" },
    { .title = "WRITES AS", .path = "writesAs" },
    { .title = NULL },
};
static const struct column peer_columns[] = {
    { .title = "MEMBER", .path = "here" },
    { .title = "OF", .path = "replicaId" },
    { .title = "STATE", .path = "state" },
    { .title = "HEARD MS AGO", .path = "heardMs", .otherwise = "0" },
    { .title = "LACKS", .path = "lackedHere", .otherwise = "0" },
    { .title = "IT LACKS", .path = "lackedThere", .otherwise = "0" },
    { .title = NULL },
};
static const struct column actor_columns[] = {
    { .title = "MEMBER", .path = "here" },
    { .title = "ACTOR", .path = "actor" },
    { .title = "OF", .path = "member", .otherwise = "0" },
    { .title = "STATE", .path = "state" },
    { .title = "UP TO", .path = "upTo", .otherwise = "0" },
    { .title = "ABOVE", .path = "above", .otherwise = "0" },
    { .title = "TOP", .path = "top", .otherwise = "0" },
    { .title = NULL },
};

static const char *peer_state(const json_t *peer)
{
    if (!json_is_true(json_object_get(peer, "reported")))
        return "unheard";
    return json_is_true(json_object_get(peer, "syncing")) ? "syncing" : "ok";
}

static const char *actor_state(const json_t *actor)
{
    return json_is_true(json_object_get(actor, "closed")) ? "closed" : "open";
}

/* The rows that all members have under that name, each with its member and state. */
static json_t *rows_of(const json_t *members, const char *name,
                       const char *(*state)(const json_t *row))
{
    json_t *rows = json_array();
    const json_t *member;
    json_t *each;
    size_t i, k;

    json_array_foreach((json_t *)(uintptr_t)members, i, member)
    {
        json_array_foreach(json_object_get(member, name), k, each)
        {
            json_t *row = json_copy(each);

            json_object_set(row, "here", json_object_get(member, "replicaId"));
            json_object_set_new(row, "state", json_string(state(each)));
            json_array_append_new(rows, row);
        }
    }
    return rows;
}

static void print_clock(const json_t *answer)
{
    const json_t *members = json_object_get(answer, "members");
    json_t *peers = rows_of(members, "peers", peer_state);
    json_t *actors = rows_of(members, "actors", actor_state);

    print_table("members", members, member_columns);
    print_table("what each knows of the others", peers, peer_columns);
    print_table("writes that each has, by actor", actors, actor_columns);
    json_decref(actors);
    json_decref(peers);
}

/* The exit code is 1 if a member could not be asked. */
static int show(const struct arguments *arguments)
{
    uint32_t shard;
    int code;

    if (argument_number("SHARD", arguments->words[0], 0, 4095, &shard) != ERR_OK)
        return 2;
    json_t *answer = call_json(arguments, "AdminService/GetShardClock",
                               json_pack("{s:i}", "shard", (int)shard), &code);
    const json_t *member;
    size_t i;

    if (answer == NULL)
        return code;
    if (wants_json(arguments))
        print_json(answer);
    else
        print_clock(answer);
    json_array_foreach(json_object_get(answer, "members"), i, member)
    {
        if (json_object_get(member, "state") != NULL &&
            slice_equal(slice_from_text(answer_text(member, "state")),
                        slice_from_text("unreachable")))
            code = 1;
    }
    json_decref(answer);
    return code;
}

const struct verb verb_clock[] = {
    {
        .words = "clock",
        .topic = VERB_TOPIC_LOOK,
        .arguments = "SHARD",
        .summary = "what each member of a shard has of its documents, and lacks",
        .details = "LACKS counts writes that a member lacks of another one, IT LACKS the other way "
                   "round, by the last report. An actor is one life of a process that wrote; "
                   "TOP above the sum of UP TO and ABOVE shows holes. It exits with 1 if a member "
                   "does not "
                   "answer.",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = show,
    },
    { .words = NULL },
};
