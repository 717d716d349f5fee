#include "client/cli/call/goods_call.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
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

static const struct page_method trace_page = {
    .method = "InventoryService/TraceItem",
    .key = "itemUid",
    .rows = "steps",
    .page_size_max = 200,
    .columns = step_columns,
};

static int spend(const struct arguments *arguments)
{
    json_t *request = goods_request(arguments, arguments->words[0]);
    json_t *uids = json_array();

    for (uint32_t i = 1; i < arguments->word_count; i++)
        json_array_append_new(uids, json_string(arguments->words[i]));
    json_object_set_new(request, "itemUids", uids);
    return goods_call(arguments, "LedgerService/Spend", request);
}

static int trace(const struct arguments *arguments)
{
    return page_call(arguments, &trace_page);
}

const struct verb verb_item[] = {
    {
        .words = "item trace",
        .topic = VERB_TOPIC_GOODS,
        .arguments = "UID",
        .summary = "every holder that an item ever had",
        .options = VERB_OPTIONS(OPTIONS_OF_PAGES, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = trace,
    },
    {
        .words = "item spend",
        .topic = VERB_TOPIC_GOODS,
        .arguments = "PLAYER UID..",
        .summary = "take items out of the game",
        .details = GOODS_DETAILS,
        .options = VERB_OPTIONS(OPTIONS_OF_CHANGES, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = spend,
    },
    { .words = NULL },
};
