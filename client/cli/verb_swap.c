#include <stdio.h>
#include <string.h>

#include "client/cli/goods_call.h"
#include "client/cli/options.h"
#include "client/cli/output.h"
#include "client/cli/verb.h"

static const struct column player_columns[] = {
    { .title = "PLAYER", .path = "playerId" },
    { .title = "BALANCES", .path = "balances" },
    { .title = "ITEMS", .path = "items" },
    { .title = NULL },
};

/* "gold=30,0123..ef": amounts of currencies and UIDs of items; "-": nothing. */
static bool add_goods(json_t *request, const char *goods, const char *currencies_key,
                      const char *items_key)
{
    return goods_add_list(request, strcmp(goods, "-") == 0 ? "" : goods, items_key, currencies_key);
}

static int swap(const struct arguments *arguments)
{
    int code;
    json_t *request = json_pack(
        "{s:s, s:s, s:s, s:s, s:s}", "opId", arguments->words[0], "playerId", arguments->words[1],
        "otherPlayerId", arguments->words[3], "authority", "unheld", "otherAuthority", "unheld");

    if (!add_goods(request, arguments->words[2], "currencies", "itemUids") ||
        !add_goods(request, arguments->words[4], "otherCurrencies", "otherItemUids")) {
        fprintf(stderr,
                "holdfast: GOODS are UIDs and CURRENCY=AMOUNT, with commas between, or -\n");
        json_decref(request);
        return 2;
    }
    json_t *answer = call_json(arguments, "TransactionService/Swap", request, &code);
    if (answer != NULL && wants_json(arguments))
        print_json(answer);
    else if (answer != NULL)
        print_table(NULL, json_object_get(answer, "players"), player_columns);
    json_decref(answer);
    return code;
}

const struct verb verb_swap[] = {
    {
        .words = "swap",
        .topic = VERB_TOPIC_GOODS,
        .arguments = "OP_ID PLAYER GOODS PLAYER GOODS",
        .summary = "both give, or neither; gold=30,<item uid>",
        .details =
            "GOODS: gold=30,<item uid>,..; - for nothing. It works only while no game server\n"
            "holds either player.",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = swap,
    },
    { .words = NULL },
};
