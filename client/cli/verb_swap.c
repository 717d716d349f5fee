#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/output.h"
#include "client/cli/verb.h"

#define GOODS_BYTES_MAX 4096u

static const struct column player_columns[] = {
    { .title = "PLAYER", .path = "playerId" },
    { .title = "BALANCES", .path = "balances" },
    { .title = "ITEMS", .path = "items" },
    { .title = NULL },
};

/* "gold=30,0123..ef": amounts of currencies and UIDs of items; "-": nothing. */
static void add_goods(json_t *request, const char *goods, const char *currencies_key,
                      const char *items_key)
{
    json_t *currencies = json_array();
    json_t *items = json_array();
    char text[GOODS_BYTES_MAX];
    char *rest = NULL;

    (void)snprintf(text, sizeof text, "%s", strcmp(goods, "-") == 0 ? "" : goods);
    for (char *each = strtok_r(text, ",", &rest); each != NULL; each = strtok_r(NULL, ",", &rest)) {
        char *equals = strchr(each, '=');
        if (equals == NULL) {
            json_array_append_new(items, json_string(each));
            continue;
        }
        *equals = '\0';
        json_array_append_new(currencies,
                              json_pack("{s:s, s:s}", "currency", each, "amount", equals + 1));
    }
    json_object_set_new(request, currencies_key, currencies);
    json_object_set_new(request, items_key, items);
}

int verb_swap(const struct arguments *arguments)
{
    int code;

    if (arguments->word_count != 6) {
        fprintf(stderr, "usage: holdfast swap OP_ID PLAYER GOODS PLAYER GOODS\n"
                        "       GOODS: gold=30,<item uid>,..; - for nothing\n");
        return 2;
    }
    json_t *request =
        json_pack("{s:s, s:s, s:s, s:{s:{}}, s:{s:{}}}", "opId", arguments->words[1], "playerId",
                  arguments->words[2], "otherPlayerId", arguments->words[4], "authority", "unheld",
                  "otherAuthority", "unheld");
    add_goods(request, arguments->words[3], "currencies", "itemUids");
    add_goods(request, arguments->words[5], "otherCurrencies", "otherItemUids");
    json_t *answer = call_json(arguments, "TransactionService/Swap", request, &code);
    if (answer != NULL && wants_json(arguments))
        print_json(answer);
    else if (answer != NULL)
        print_table(NULL, json_object_get(answer, "players"), player_columns);
    json_decref(answer);
    return code;
}
