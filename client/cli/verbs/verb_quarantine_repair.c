#include <stdio.h>
#include <string.h>

#include "client/cli/console/answer.h"
#include "client/cli/call/goods_call.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"
#include "client/sdk/client.h"

#define ROWS_A_REPAIR 64u

static const struct command_option option_rows = {
    .flag = "rows",
    .value = "LIST",
    .meaning = "keys of rows that cannot be read, with commas",
};
static const struct command_option option_sections = {
    .flag = "sections",
    .value = "LIST",
    .meaning = "which the player had: NAME:SCHEMA, with commas",
};
static const struct command_option option_balances = {
    .flag = "balances",
    .value = "LIST",
    .meaning = "that the ledger does not tell: gold=5, with commas",
};
static const struct command_option option_rebuild = {
    .flag = "rebuild",
    .meaning = "make the player's own row again from its other rows",
};

static const struct column check_columns[] = {
    { .title = "TABLE", .path = "table" },
    { .title = "SIZE", .path = "sizeBytes" },
    { .title = "WHY", .path = "why" },
    { .title = "KEY", .path = "key" },
    { .title = NULL },
};

static const struct column repair_columns[] = {
    { .title = "TABLE", .path = "table" },
    { .title = "OUTCOME", .path = "outcome" },
    { .title = "KEY", .path = "key" },
    { .title = NULL },
};

/* The command that repairs them, ready to be sent; its reason is a person's. */
static void print_command(const char *player, const json_t *rows)
{
    const json_t *row;
    bool rebuild = false;
    uint32_t named = 0;
    size_t i;

    printf("\nto repair: holdfast quarantine repair %s --reason TEXT", player);
    json_array_foreach(rows, i, row)
    {
        const char *table = answer_text(row, "table");
        bool wants_rebuild = strcmp(table, "p") == 0 || strcmp(table, "r") == 0;
        rebuild = rebuild || wants_rebuild;
        if (strcmp(table, "p") != 0 && named < ROWS_A_REPAIR)
            printf("%s%s", named++ == 0 ? " --rows " : ",", answer_text(row, "key"));
    }
    printf("%s --dry-run\n", rebuild ? " --rebuild" : "");
}

static int check(const struct arguments *arguments)
{
    const char *player = arguments->words[0];
    int code = 0;
    json_t *rows = call_pages(arguments, "AdminService/CheckPlayer", "rows",
                              json_pack("{s:s}", "playerId", player), &code);

    if (rows == NULL)
        return code;
    if (wants_json(arguments)) {
        print_json(rows);
    } else if (json_array_size(rows) == 0) {
        printf("every row of %s can be read\n", player);
    } else {
        print_table(NULL, rows, check_columns);
        print_command(player, rows);
    }
    json_decref(rows);
    return code;
}

/* "a,b" as an array of what `make` says of each. False: one of them is malformed. */
static bool add_list(json_t *request, const char *name, const char *list,
                     json_t *(*make)(const char *text, size_t size))
{
    json_t *all = json_array();
    struct slice one;
    bool good = true;

    json_object_set_new(request, name, all);
    while (good && list_next(&list, &one)) {
        json_t *made = one.size > 0 ? make((const char *)one.data, one.size) : NULL;
        good = made != NULL && json_array_append_new(all, made) == 0;
    }
    return good;
}

static json_t *make_text(const char *text, size_t size)
{
    return json_stringn(text, size);
}

static json_t *make_section(const char *text, size_t size)
{
    const char *colon = memchr(text, ':', size);
    json_int_t schema = 0;

    for (const char *at = colon != NULL ? colon + 1 : text + size; at < text + size; at++) {
        if (*at < '0' || *at > '9' || schema > UINT32_MAX / 10)
            return NULL;
        schema = schema * 10 + (*at - '0');
    }
    return json_pack("{s:s%, s:I}", "name", text, colon != NULL ? (size_t)(colon - text) : size,
                     "schemaVersion", schema);
}

static void print_repair(const char *player, const json_t *answer)
{
    const json_t *balances = json_object_get(answer, "balances");
    const json_t *balance;
    size_t i;

    if (json_array_size(json_object_get(answer, "rows")) > 0)
        print_table(NULL, json_object_get(answer, "rows"), repair_columns);
    printf("%s %s: ledger %llu, items %llu, reservations %llu", player,
           json_is_true(json_object_get(answer, "dryRun")) ? "would have" : "has",
           (unsigned long long)answer_number(answer, "ledgerSeq"),
           (unsigned long long)answer_number(answer, "itemCount"),
           (unsigned long long)answer_number(answer, "reservationCount"));
    json_array_foreach(balances, i, balance) printf(", %s %lld", answer_text(balance, "currency"),
                                                    (long long)answer_signed(balance, "amount"));
    printf("\n");
    if (json_is_true(json_object_get(answer, "transactionFinished")))
        printf("a transaction that held the player was finished\n");
    if (!json_is_true(json_object_get(answer, "dryRun")))
        printf("look again: holdfast quarantine check %s; then release\n", player);
}

static int repair(const struct arguments *arguments)
{
    const char *player = arguments->words[0];
    const char *reason = option_text(arguments, &option_reason);
    int code;

    if (reason[0] == 0) {
        fprintf(stderr, "holdfast: a repair wants --reason TEXT: it is logged\n");
        return 2;
    }
    json_t *request =
        json_pack("{s:s, s:s, s:s, s:s, s:b, s:b}", "playerId", player, "opId",
                  option_text(arguments, &option_op_id), "reason", reason, "authority",
                  "system:admin", "rebuild", option_is_set(arguments, &option_rebuild), "dryRun",
                  option_is_set(arguments, &option_dry_run));
    bool good =
        add_list(request, "rows", option_text(arguments, &option_rows), make_text) &&
        add_list(request, "sections", option_text(arguments, &option_sections), make_section) &&
        add_list(request, "balances", option_text(arguments, &option_balances), goods_amount);
    if (!good) {
        fprintf(stderr, "holdfast: --rows wants KEY,.. --sections NAME:SCHEMA,.. and --balances "
                        "CURRENCY=AMOUNT,..\n");
        json_decref(request);
        return 2;
    }
    json_t *answer = call_json(arguments, "AdminService/RepairPlayer", request, &code);
    if (answer != NULL && wants_json(arguments))
        print_json(answer);
    else if (answer != NULL)
        print_repair(player, answer);
    json_decref(answer);
    return code;
}

const struct verb verb_quarantine_repair[] = {
    {
        .words = "quarantine check",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER",
        .summary = "which rows of a player cannot be read",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = check,
    },
    {
        .words = "quarantine repair",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER --reason TEXT [--rows KEYS] [--rebuild]",
        .summary = "make such rows again, or give them up",
        .details = "See docs/runbooks/HoldfastRowsUnreadable.md.",
        .options =
            VERB_OPTIONS(OPTIONS_OF_CHANGES, &option_rows, &option_rebuild, &option_sections,
                         &option_balances, &option_dry_run, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = repair,
    },
    { .words = NULL },
};
