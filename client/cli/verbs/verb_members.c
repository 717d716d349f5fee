/* node, shard, replica, rebalance: who holds which shard. docs/nodes.md. */
#include <stdio.h>
#include <string.h>

#include "client/cli/help.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"

static const struct command_option option_from = {
    .flag = "from",
    .value = "NODE",
    .meaning = "the node that gives its replica up",
};
static const struct command_option option_to = {
    .flag = "to",
    .value = "NODE",
    .meaning = "the node that gets it",
};

static const struct column move_columns[] = {
    { .title = "SHARD", .path = "shard", .otherwise = "0" },
    { .title = "MEMBERS NOW", .path = "membersNow" },
    { .title = "MEMBERS THEN", .path = "members" },
    { .title = NULL },
};

static int change_node(const struct arguments *arguments, const char *want)
{
    const char *node = arguments->words[0];
    int code;
    json_t *answer = call_json(arguments, "AdminService/ChangeNode",
                               json_pack("{s:s, s:s}", "node", node, "want", want), &code);

    if (answer != NULL && wants_json(arguments))
        print_json(answer);
    else if (answer != NULL)
        printf("asked: %s of node %s (replica %s), which owns %lld shards and holds %lld; "
               "holdfast status shows how far it is\n",
               want, node, json_string_value(json_object_get(answer, "replicaId")),
               (long long)json_integer_value(json_object_get(answer, "shardsOwned")),
               (long long)json_integer_value(json_object_get(answer, "shardsHeld")));
    json_decref(answer);
    return code;
}

static int drain(const struct arguments *arguments)
{
    return change_node(arguments, "drain");
}

static int undrain(const struct arguments *arguments)
{
    return change_node(arguments, "undrain");
}

static int remove_node(const struct arguments *arguments)
{
    return change_node(arguments, "remove");
}

static int move(const struct arguments *arguments)
{
    const char *from = option_text(arguments, &option_from);
    const char *to = option_text(arguments, &option_to);
    uint32_t shard;
    int code;

    if (from[0] == 0 || to[0] == 0)
        return refuse_usage(arguments);
    if (argument_number("SHARD", arguments->words[0], 0, 4095, &shard) != ERR_OK)
        return 2;
    json_t *answer =
        call_json(arguments, "AdminService/MoveShard",
                  json_pack("{s:i, s:s, s:s}", "shard", (int)shard, "from", from, "to", to), &code);
    if (answer != NULL && wants_json(arguments))
        print_json(answer);
    else if (answer != NULL)
        printf("asked: shard %u moves from %s to %s; holdfast status shows how far it is\n",
               (unsigned)shard, from, to);
    json_decref(answer);
    return code;
}

static int rebuild_replica(const struct arguments *arguments)
{
    const char *node = arguments->words[1];
    uint32_t shard;
    int code;

    if (argument_number("SHARD", arguments->words[0], 0, 4095, &shard) != ERR_OK)
        return 2;
    json_t *answer = call_json(arguments, "AdminService/RebuildReplica",
                               json_pack("{s:i, s:s}", "shard", (int)shard, "node", node), &code);
    const char *state = json_string_value(json_object_get(answer, "state"));

    if (answer != NULL && wants_json(arguments))
        print_json(answer);
    else if (answer != NULL && state != NULL && strcmp(state, "healthy") == 0)
        printf("nothing to do: the replica of shard %u on %s is not quarantined\n", (unsigned)shard,
               node);
    else if (answer != NULL)
        printf("%s: the replica of shard %u on %s leaves, drops its rows and comes back; "
               "holdfast status shows how far it is\n",
               state != NULL ? state : "asked", (unsigned)shard, node);
    json_decref(answer);
    return code;
}

static int rebalance(const struct arguments *arguments)
{
    bool dry_run = option_is_set(arguments, &option_dry_run);
    int code;
    json_t *answer = call_json(arguments, "AdminService/RebalanceShards",
                               json_pack("{s:b}", "dryRun", dry_run), &code);
    json_t *moves = json_object_get(answer, "moves");

    if (answer != NULL && wants_json(arguments))
        print_json(answer);
    else if (answer != NULL && json_array_size(moves) == 0)
        printf("nothing to move: replicas are spread evenly\n");
    else if (answer != NULL)
        print_table(dry_run ? "would move" : "moving", moves, move_columns);
    json_decref(answer);
    return code;
}

const struct verb verb_members[] = {
    {
        .words = "node drain",
        .topic = VERB_TOPIC_MEMBERS,
        .arguments = "NODE",
        .summary = "let a node own nothing",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = drain,
    },
    {
        .words = "node undrain",
        .topic = VERB_TOPIC_MEMBERS,
        .arguments = "NODE",
        .summary = "let it own shards again",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = undrain,
    },
    {
        .words = "node remove",
        .topic = VERB_TOPIC_MEMBERS,
        .arguments = "NODE",
        .summary = "let others take its places in every shard",
        .details = "Once it holds nothing, it can be stopped for good. See docs/nodes.md.",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = remove_node,
    },
    {
        .words = "shard move",
        .topic = VERB_TOPIC_MEMBERS,
        .arguments = "SHARD --from NODE --to NODE",
        .summary = "let another node hold a shard",
        .options = VERB_OPTIONS(&option_from, &option_to, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = move,
    },
    {
        .words = "replica rebuild",
        .topic = VERB_TOPIC_MEMBERS,
        .arguments = "SHARD NODE",
        .summary = "end the quarantine of a shard's replica",
        .details =
            "It leaves the shard, drops its rows and comes back by a snapshot of the others. "
            "See docs/runbooks/HoldfastReplicaQuarantined.md.",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = rebuild_replica,
    },
    {
        .words = "rebalance",
        .topic = VERB_TOPIC_MEMBERS,
        .arguments = "",
        .summary = "spread replicas evenly over nodes",
        .options = VERB_OPTIONS(&option_dry_run, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = rebalance,
    },
    { .words = NULL },
};
