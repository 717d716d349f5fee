#include <stdio.h>
#include <string.h>

#include "client/cli/admin_client.h"
#include "client/cli/output.h"
#include "client/cli/verb.h"
#include "client/sdk/client.h"

#define ROWS_A_REPAIR 64u

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

/* All pages. NULL: told on standard error. */
static json_t *unreadable_rows(const struct arguments *arguments, const char *player, int *ret_code)
{
    json_t *rows = json_array();
    char cursor[1200] = "";

    do {
        json_t *page =
            call_json(arguments, "AdminService/CheckPlayer",
                      json_pack("{s:s, s:s}", "playerId", player, "cursor", cursor), ret_code);
        if (page == NULL) {
            json_decref(rows);
            return NULL;
        }
        json_array_extend(rows, json_object_get(page, "rows"));
        (void)snprintf(cursor, sizeof cursor, "%s", admin_text(page, "nextCursor"));
        json_decref(page);
    } while (cursor[0] != 0);
    return rows;
}

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
        const char *table = admin_text(row, "table");
        bool wants_rebuild = strcmp(table, "p") == 0 || strcmp(table, "r") == 0;
        rebuild = rebuild || wants_rebuild;
        if (strcmp(table, "p") != 0 && named < ROWS_A_REPAIR)
            printf("%s%s", named++ == 0 ? " --rows " : ",", admin_text(row, "key"));
    }
    printf("%s --dry-run\n", rebuild ? " --rebuild" : "");
}

int quarantine_check(const struct arguments *arguments, const char *player)
{
    int code = 0;
    json_t *rows = unreadable_rows(arguments, player, &code);

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
    bool good = true;

    json_object_set_new(request, name, all);
    while (*list != 0 && good) {
        size_t size = strcspn(list, ",");
        json_t *one = size > 0 ? make(list, size) : NULL;
        good = one != NULL && json_array_append_new(all, one) == 0;
        list += size + (list[size] == ',');
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

static json_t *make_balance(const char *text, size_t size)
{
    const char *equals = memchr(text, '=', size);

    if (equals == NULL || equals == text || equals + 1 == text + size)
        return NULL;
    return json_pack("{s:s%, s:s%}", "currency", text, (size_t)(equals - text), "amount",
                     equals + 1, (size_t)(text + size - equals - 1));
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
           (unsigned long long)admin_number(answer, "ledgerSeq"),
           (unsigned long long)admin_number(answer, "itemCount"),
           (unsigned long long)admin_number(answer, "reservationCount"));
    json_array_foreach(balances, i, balance) printf(", %s %lld", admin_text(balance, "currency"),
                                                    (long long)admin_signed(balance, "amount"));
    printf("\n");
    if (json_is_true(json_object_get(answer, "transactionFinished")))
        printf("a transaction that held the player was finished\n");
    if (!json_is_true(json_object_get(answer, "dryRun")))
        printf("look again: holdfast quarantine check %s; then release\n", player);
}

int quarantine_repair(const struct arguments *arguments, const char *player)
{
    char op_id[37];
    int code;

    if (arguments->reason[0] == 0) {
        fprintf(stderr, "holdfast: a repair wants --reason TEXT: it is logged\n");
        return 2;
    }
    client_op_id(op_id);
    json_t *request =
        json_pack("{s:s, s:s, s:s, s:{s:{s:s}}, s:b, s:b}", "playerId", player, "opId", op_id,
                  "reason", arguments->reason, "authority", "system", "scope", "admin", "rebuild",
                  arguments->rebuild, "dryRun", arguments->dry_run);
    bool good = add_list(request, "rows", arguments->rows, make_text) &&
                add_list(request, "sections", arguments->sections, make_section) &&
                add_list(request, "balances", arguments->balances, make_balance);
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
