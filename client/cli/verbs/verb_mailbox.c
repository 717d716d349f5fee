#include <stdio.h>
#include <string.h>

#include "client/cli/console/answer.h"
#include "client/cli/call/goods_call.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"

static const struct column mail_columns[] = {
    { .title = "MAIL", .path = "mailId" },
    { .title = "FROM", .path = "fromPlayerId", .otherwise = "(the game)" },
    { .title = "CURRENCIES", .path = "currencies" },
    { .title = "ITEMS", .path = "items" },
    { .title = "TEXT", .path = "text" },
    { .title = "RETURNED", .path = "returned", .otherwise = "false" },
    { .title = NULL },
};
static const struct column balance_columns[] = {
    { .title = "CURRENCY", .path = "currency" },
    { .title = "AMOUNT", .path = "amount", .otherwise = "0" },
    { .title = NULL },
};
static const struct column item_columns[] = {
    { .title = "ITEM", .path = "uid" },
    { .title = "KIND", .path = "kind" },
    { .title = NULL },
};

static const struct page_method mail_page = {
    .method = "MailboxService/ListMail",
    .key = "playerId",
    .rows = "mails",
    .page_size_max = 100,
    .columns = mail_columns,
};

/* The mail's id makes the operation's: however often this is called, it is claimed once. */
static int claim(const struct arguments *arguments)
{
    char op_id[128];
    int code;

    (void)snprintf(op_id, sizeof op_id, "claim:%.64s", arguments->words[1]);
    json_t *answer =
        call_json(arguments, "MailboxService/ClaimMail",
                  json_pack("{s:s, s:s, s:s, s:[s]}", "playerId", arguments->words[0], "opId",
                            op_id, "authority", "unheld", "mailIds", arguments->words[1]),
                  &code);
    if (answer != NULL && wants_json(arguments)) {
        print_json(answer);
    } else if (answer != NULL) {
        print_table(NULL, json_object_get(answer, "balances"), balance_columns);
        print_table(NULL, json_object_get(answer, "items"), item_columns);
    }
    json_decref(answer);
    return code;
}

static const struct column delivery_columns[] = {
    { .title = "PLAYER", .path = "player" },
    { .title = "MAIL", .path = "mailId" },
    { .title = "ERROR", .path = "error" },
    { .title = NULL },
};

/* "gold=30,crate": amounts of new currencies, and kinds of new items. */
static json_t *delivery_make(const struct arguments *arguments)
{
    json_t *request = goods_request(arguments, ""), *kinds, *kind;
    json_t *players = json_array(), *items = json_array();
    size_t place;

    json_object_del(request, "playerId");
    json_object_set_new(request, "authority", json_string("system:mail"));
    json_object_set_new(request, "toPlayerIds", players);
    for (uint32_t i = 1; i < arguments->word_count; i++)
        json_array_append_new(players, json_string(arguments->words[i]));
    bool good = goods_add_list(request, arguments->words[0], "kinds", "currencies");
    kinds = json_object_get(request, "kinds");
    json_array_foreach(kinds, place, kind)
        json_array_append_new(items, json_pack("{s:O}", "kind", kind));
    json_object_set_new(request, "items", items);
    json_object_del(request, "kinds");
    if (good)
        return request;
    fprintf(stderr,
            "holdfast: GOODS are KIND of an item and CURRENCY=AMOUNT, with commas between\n");
    json_decref(request);
    return NULL;
}

static void print_delivery(const struct arguments *arguments, const json_t *results)
{
    json_t *rows = json_array(), *result;
    size_t place;

    json_array_foreach(results, place, result)
    {
        json_t *response = json_object_get(result, "response");
        json_t *error = json_object_get(result, "error");
        json_t *row = json_pack("{s:s}", "player", arguments->words[place + 1]);

        if (response != NULL)
            json_object_set(row, "mailId", json_object_get(response, "mailId"));
        if (error != NULL)
            json_object_set(row, "error", json_object_get(error, "message"));
        json_array_append_new(rows, row);
    }
    printf("operation %s\n", option_text(arguments, &option_op_id));
    print_table(NULL, rows, delivery_columns);
    json_decref(rows);
}

/* Of a delivery that failed for some: unknown if it is for any of them. */
static int failures_code(const json_t *results)
{
    const json_t *result;
    size_t place;

    json_array_foreach((json_t *)(uintptr_t)results, place, result)
    {
        if (strcmp(answer_text(json_object_get(result, "error"), "outcome"), "OUTCOME_UNKNOWN") ==
            0)
            return EXIT_UNKNOWN;
    }
    return 1;
}

/* Whether the same request may do better for any of them. */
static bool may_be_repeated(const json_t *results)
{
    const json_t *result, *error;
    size_t place;

    json_array_foreach((json_t *)(uintptr_t)results, place, result)
    {
        error = json_object_get(result, "error");
        const char *action = answer_text(error, "action");
        if (error != NULL && (action[0] == 0 || strcmp(action, "ACTION_RETRY_SAME") == 0))
            return true;
    }
    return false;
}

static int deliver(const struct arguments *arguments)
{
    json_t *request = delivery_make(arguments);
    int code;

    if (request == NULL)
        return 2;
    json_t *answer = call_json(arguments, "MailboxService/DeliverMail", request, &code);
    if (answer != NULL && wants_json(arguments))
        print_json(answer);
    else if (answer != NULL)
        print_delivery(arguments, json_object_get(answer, "results"));
    if (answer != NULL && json_object_get(answer, "failed") != NULL) {
        code = failures_code(json_object_get(answer, "results"));
        if (code != EXIT_UNKNOWN && may_be_repeated(json_object_get(answer, "results")))
            op_id_say(arguments);
    }
    json_decref(answer);
    return code;
}

static int list(const struct arguments *arguments)
{
    return page_call(arguments, &mail_page);
}

const struct verb verb_mailbox[] = {
    {
        .words = "mailbox list",
        .topic = VERB_TOPIC_GOODS,
        .arguments = "PLAYER",
        .summary = "mail that waits to be claimed",
        .options = VERB_OPTIONS(OPTIONS_OF_PAGES, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = list,
    },
    {
        .words = "mailbox claim",
        .topic = VERB_TOPIC_GOODS,
        .arguments = "PLAYER MAIL",
        .summary = "take mail out; only while no server holds the player",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = claim,
    },
    {
        .words = "mailbox deliver",
        .topic = VERB_TOPIC_GOODS,
        .arguments = "GOODS PLAYER..",
        .summary = "new goods for each player; gold=30,<kind of item>",
        .details = "GOODS: gold=30,<kind of a new item>,.. for each PLAYER, once for each --op-id.",
        .options = VERB_OPTIONS(OPTIONS_OF_CHANGES, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = deliver,
    },
    { .words = NULL },
};
