#include <stdio.h>
#include <string.h>

#include "client/cli/goods_call.h"
#include "client/cli/output.h"
#include "client/cli/verb.h"

static const struct column step_columns[] = {
    { .title = "STEP", .path = "step" },
    { .title = "PLAYER", .path = "playerId" },
    { .title = "HOLDS", .path = "held", .otherwise = "false" },
    { .title = "KIND", .path = "kind", .prefix = "LEDGER_KIND_" },
    { .title = "TO", .path = "toPlayerId" },
    { .title = "ENTRY", .path = "ledgerSeq" },
    { .title = "AUTHORITY", .path = "authority" },
    { .title = "OPERATION", .path = "opId" },
    { .title = NULL },
};

static const struct page_method trace = {
    .method = "InventoryService/Trace",
    .key = "itemUid",
    .rows = "steps",
    .page_size_max = 200,
    .columns = step_columns,
};

static int consume(const struct arguments *arguments)
{
    json_t *request = goods_request(arguments, arguments->words[2]);
    json_t *uids = json_array();

    for (uint32_t i = 3; i < arguments->word_count; i++)
        json_array_append_new(uids, json_string(arguments->words[i]));
    json_object_set_new(request, "itemUids", uids);
    return goods_call(arguments, "InventoryService/Consume", request);
}

int verb_item(const struct arguments *arguments)
{
    const char *what = arguments->word_count > 1 ? arguments->words[1] : "";

    if (arguments->word_count == 3 && strcmp(what, "trace") == 0)
        return page_call(arguments, &trace);
    if (arguments->word_count >= 4 && strcmp(what, "consume") == 0)
        return consume(arguments);
    fprintf(stderr, "usage: holdfast item trace UID [--page-size N] [--cursor CURSOR]\n"
                    "       holdfast item consume PLAYER UID.. [--op-id ID] [--reason TEXT]\n"
                    "consume works only while no game server holds the player\n");
    return 2;
}
