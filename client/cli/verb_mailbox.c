#include <stdio.h>

#include "client/cli/options.h"
#include "client/cli/output.h"
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
    { .words = NULL },
};
