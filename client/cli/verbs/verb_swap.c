#include <stdio.h>
#include <string.h>

#include "client/cli/call/goods_call.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"

static const struct column player_columns[] = {
    { .title = "PLAYER", .path = "playerId" },
    { .title = "BALANCES", .path = "balances" },
    { .title = "ITEMS", .path = "items" },
    { .title = NULL },
};

/* Goods are "gold=30,0123..ef": amounts of currencies and UIDs of items; "-": nothing. NULL: they
 * are not. */
static json_t *side_make(const char *player, const char *goods)
{
    json_t *gives = json_object();

    if (!goods_add_list(gives, strcmp(goods, "-") == 0 ? "" : goods, "itemUids", "currencies")) {
        json_decref(gives);
        return NULL;
    }
    return json_pack("{s:s, s:s, s:o}", "playerId", player, "authority", "unheld", "gives", gives);
}

static int swap(const struct arguments *arguments)
{
    int code;
    json_t *a = side_make(arguments->words[1], arguments->words[2]);
    json_t *b = side_make(arguments->words[3], arguments->words[4]);

    if (a == NULL || b == NULL) {
        fprintf(stderr,
                "holdfast: GOODS are UIDs and CURRENCY=AMOUNT, with commas between, or -\n");
        json_decref(a);
        json_decref(b);
        return 2;
    }
    json_t *request = json_pack("{s:s, s:o, s:o}", "opId", arguments->words[0], "a", a, "b", b);
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
