#include <stdio.h>

#include "client/cli/call/goods_call.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"
#include "client/sdk/client.h"

static const struct command_option option_made = {
    .flag = "made",
    .value = "LIST",
    .meaning = "surplus to be regarded as made: UID,gold=5",
};

static const struct column columns[] = {
    { .title = "PLAYER", .path = "playerId" },
    { .title = "SINCE MS", .path = "atMs" },
    { .title = "REASON", .path = "reason" },
    { .title = NULL },
};

static int list(const struct arguments *arguments)
{
    json_t *all = json_array();
    int code;
    json_t *cluster = call_json(arguments, "AdminService/GetCluster", json_object(), &code);
    int shards = (int)json_integer_value(json_object_get(cluster, "shardCount"));

    json_decref(cluster);
    for (int shard = 0; shard < shards && code == 0; shard++) {
        json_t *page = call_json(arguments, "AdminService/ListQuarantined",
                                 json_pack("{s:i}", "shard", shard), &code);
        json_array_extend(all, json_object_get(page, "players"));
        json_decref(page);
    }
    if (code == 0 && wants_json(arguments))
        print_json(all);
    else if (code == 0 && json_array_size(all) == 0)
        printf("no player is quarantined\n");
    else if (code == 0)
        print_table(NULL, all, columns);
    json_decref(all);
    return code;
}

static int show(const struct arguments *arguments)
{
    const char *player = arguments->words[0];
    int code;
    json_t *answer = call_json(arguments, "AdminService/GetQuarantine",
                               json_pack("{s:s}", "playerId", player), &code);
    const json_t *held = json_object_get(answer, "quarantined");

    if (answer != NULL && wants_json(arguments))
        print_json(answer);
    else if (answer != NULL && held == NULL)
        printf("%s is not quarantined\n", player);
    else if (answer != NULL)
        printf("%s is quarantined: %s\n", player,
               json_string_value(json_object_get(held, "reason")));
    json_decref(answer);
    return code;
}

static int let_go(const struct arguments *arguments)
{
    const char *player = arguments->words[0];
    const char *reason = option_text(arguments, &option_reason);
    int code;

    if (reason[0] == 0) {
        fprintf(stderr, "holdfast: a release wants --reason TEXT: it is logged\n");
        return 2;
    }
    json_t *request = json_pack("{s:s, s:s, s:s, s:s}", "playerId", player, "opId",
                                option_text(arguments, &option_op_id), "reason", reason,
                                "authority", "system:admin");
    if (!goods_add_list(request, option_text(arguments, &option_made), "madeItems",
                        "madeAmounts")) {
        fprintf(stderr, "holdfast: --made wants UIDs and CURRENCY=AMOUNT, with commas between\n");
        json_decref(request);
        return 2;
    }
    json_t *answer = call_json(arguments, "AdminService/ReleaseQuarantine", request, &code);
    if (answer != NULL)
        printf("%s is released; it was quarantined for: %s\n", player,
               json_string_value(json_object_get(answer, "wasFor")));
    json_decref(answer);
    return code;
}

const struct verb verb_quarantine[] = {
    {
        .words = "quarantine list",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "",
        .summary = "players held back, and why",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = list,
    },
    {
        .words = "quarantine show",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER",
        .summary = "whether and why a player is held back",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = show,
    },
    {
        .words = "quarantine release",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER --reason TEXT [--made GOODS]",
        .summary = "let a player go on",
        .details = "GOODS: <item uid>,gold=5,..",
        .options = VERB_OPTIONS(OPTIONS_OF_CHANGES, &option_made, OPTIONS_OF_CALLS),
        .run = let_go,
    },
    { .words = NULL },
};
