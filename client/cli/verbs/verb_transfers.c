#include <stdio.h>

#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/console/shards.h"
#include "client/cli/verb.h"

static const struct column columns[] = {
    { .title = "SHARD", .path = "shard", .otherwise = "0" },
    { .title = "OWNER", .path = "owner" },
    { .title = "IN FLIGHT", .path = "transfersOpen", .otherwise = "0" },
    { .title = "OLDEST MS", .path = "transfersOldestMs", .otherwise = "0" },
    { .title = "RETRIES", .path = "transfersRetried", .otherwise = "0" },
    { .title = NULL },
};

/* Only shards that have something on its way, or had to send something again. */
static json_t *of_interest(const json_t *shards)
{
    json_t *chosen = json_array();
    size_t i;
    json_t *shard;

    json_array_foreach(shards, i, shard)
    {
        if (json_object_get(shard, "transfersOpen") != NULL ||
            json_object_get(shard, "transfersRetried") != NULL)
            json_array_append(chosen, shard);
    }
    return chosen;
}

static int transfers(const struct arguments *arguments)
{
    int code = 0;
    json_t *shards = shards_read(arguments, &code);
    json_t *chosen = of_interest(shards);
    if (code == 0 && wants_json(arguments))
        print_json(chosen);
    else if (code == 0 && json_array_size(chosen) == 0)
        printf("nothing is on its way, nothing was sent again\n");
    else if (code == 0)
        print_table(NULL, chosen, columns);
    json_decref(chosen);
    json_decref(shards);
    return code;
}

const struct verb verb_transfers[] = {
    {
        .words = "transfers",
        .topic = VERB_TOPIC_LOOK,
        .arguments = "",
        .summary = "what is on its way between shards",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = transfers,
    },
    { .words = NULL },
};
