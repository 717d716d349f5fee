/* node, shard, rebalance: who holds which shard. docs/nodes.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/output.h"
#include "client/cli/verb.h"

static const struct column move_columns[] = {
    { .title = "SHARD", .path = "shard", .otherwise = "0" },
    { .title = "MEMBERS NOW", .path = "membersNow" },
    { .title = "MEMBERS THEN", .path = "members" },
    { .title = NULL },
};

int verb_node(const struct arguments *arguments)
{
    const char *want = arguments->word_count > 1 ? arguments->words[1] : "";
    bool known =
        strcmp(want, "drain") == 0 || strcmp(want, "undrain") == 0 || strcmp(want, "remove") == 0;
    int code;

    if (!known || arguments->word_count != 3) {
        fprintf(stderr, "holdfast: node drain NODE, node undrain NODE, node remove NODE\n");
        return 2;
    }
    json_t *answer =
        call_json(arguments, "AdminService/ChangeNode",
                  json_pack("{s:s, s:s}", "node", arguments->words[2], "want", want), &code);
    if (answer != NULL && wants_json(arguments))
        print_json(answer);
    else if (answer != NULL)
        printf("asked: %s of node %s (replica %s), which owns %lld shards and holds %lld; "
               "holdfast status shows how far it is\n",
               want, arguments->words[2], json_string_value(json_object_get(answer, "replicaId")),
               (long long)json_integer_value(json_object_get(answer, "shardsOwned")),
               (long long)json_integer_value(json_object_get(answer, "shardsHeld")));
    json_decref(answer);
    return code;
}

int verb_shard(const struct arguments *arguments)
{
    const char *what = arguments->word_count > 1 ? arguments->words[1] : "";
    uint32_t shard;
    int code;

    if (strcmp(what, "move") != 0 || arguments->word_count != 3 || arguments->from[0] == 0 ||
        arguments->to[0] == 0) {
        fprintf(stderr, "holdfast: shard move SHARD --from NODE --to NODE\n");
        return 2;
    }
    if (argument_number("shard", arguments->words[2], 0, 4095, &shard) != ERR_OK)
        return 2;
    json_t *answer = call_json(arguments, "AdminService/MoveShard",
                               json_pack("{s:i, s:s, s:s}", "shard", (int)shard, "from",
                                         arguments->from, "to", arguments->to),
                               &code);
    if (answer != NULL && wants_json(arguments))
        print_json(answer);
    else if (answer != NULL)
        printf("asked: shard %u moves from %s to %s; holdfast status shows how far it is\n",
               (unsigned)shard, arguments->from, arguments->to);
    json_decref(answer);
    return code;
}

int verb_rebalance(const struct arguments *arguments)
{
    int code;

    if (arguments->word_count != 1) {
        fprintf(stderr, "holdfast: rebalance [--dry-run]\n");
        return 2;
    }
    json_t *answer = call_json(arguments, "AdminService/Rebalance",
                               json_pack("{s:b}", "dryRun", arguments->dry_run), &code);
    json_t *moves = json_object_get(answer, "moves");

    if (answer != NULL && wants_json(arguments))
        print_json(answer);
    else if (answer != NULL && json_array_size(moves) == 0)
        printf("nothing to move: replicas are spread evenly\n");
    else if (answer != NULL)
        print_table(arguments->dry_run ? "would move" : "moving", moves, move_columns);
    json_decref(answer);
    return code;
}
