#include <stdio.h>
#include <string.h>

#include "client/cli/output.h"
#include "client/cli/verb.h"
#include "client/sdk/client.h"

static const struct column columns[] = {
    { .title = "PLAYER", .path = "playerId" },
    { .title = "SINCE MS", .path = "atMs" },
    { .title = "REASON", .path = "reason" },
    { .title = NULL },
};

static int list(const struct arguments *arguments)
{
    json_t *all = json_array();
    int code;
    json_t *cluster = call_json(arguments, "AdminService/GetCluster", json_object(), &code);
    int shards = (int)json_integer_value(json_object_get(cluster, "shardCount"));

    json_decref(cluster);
    for (int shard = 0; shard < shards && code == 0; shard++) {
        json_t *page = call_json(arguments, "AdminService/ListQuarantined",
                                 json_pack("{s:i}", "shard", shard), &code);
        json_array_extend(all, json_object_get(page, "players"));
        json_decref(page);
    }
    if (code == 0 && wants_json(arguments))
        print_json(all);
    else if (code == 0 && json_array_size(all) == 0)
        printf("nobody is quarantined\n");
    else if (code == 0)
        print_table(NULL, all, columns);
    json_decref(all);
    return code;
}

static int show(const struct arguments *arguments, const char *player)
{
    int code;
    json_t *answer = call_json(arguments, "AdminService/GetQuarantine",
                               json_pack("{s:s}", "playerId", player), &code);
    const json_t *held = json_object_get(answer, "quarantined");

    if (answer != NULL && wants_json(arguments))
        print_json(answer);
    else if (answer != NULL && held == NULL)
        printf("%s is not quarantined\n", player);
    else if (answer != NULL)
        printf("%s is quarantined: %s\n", player,
               json_string_value(json_object_get(held, "reason")));
    json_decref(answer);
    return code;
}

/* "UID,gold=5" into the request. False: written to standard error. */
static bool add_made(json_t *request, const char *list)
{
    json_t *items = json_array(), *amounts = json_array();
    bool good = true;

    json_object_set_new(request, "madeItems", items);
    json_object_set_new(request, "madeAmounts", amounts);
    while (*list != 0 && good) {
        size_t size = strcspn(list, ",");
        const char *equals = memchr(list, '=', size);
        good = size > 0 && (equals == NULL || (equals > list && equals + 1 < list + size));
        if (good && equals == NULL)
            json_array_append_new(items, json_stringn(list, size));
        else if (good)
            json_array_append_new(amounts, json_pack("{s:s%, s:s%}", "currency", list,
                                                     (size_t)(equals - list), "amount", equals + 1,
                                                     (size_t)(list + size - equals - 1)));
        list += size + (list[size] == ',');
    }
    if (!good)
        fprintf(stderr, "holdfast: --made wants UIDs and CURRENCY=AMOUNT, with commas between\n");
    return good;
}

static int let_go(const struct arguments *arguments, const char *player)
{
    char op_id[37];
    int code;

    if (arguments->reason[0] == 0) {
        fprintf(stderr, "holdfast: a release wants --reason TEXT: it is logged\n");
        return 2;
    }
    client_op_id(op_id);
    json_t *request =
        json_pack("{s:s, s:s, s:s, s:{s:{s:s}}}", "playerId", player, "opId", op_id, "reason",
                  arguments->reason, "authority", "system", "scope", "admin");
    if (!add_made(request, arguments->made)) {
        json_decref(request);
        return 2;
    }
    json_t *answer = call_json(arguments, "AdminService/ReleaseQuarantine", request, &code);
    if (answer != NULL)
        printf("%s is released; it was quarantined for: %s\n", player,
               json_string_value(json_object_get(answer, "wasFor")));
    json_decref(answer);
    return code;
}

int verb_quarantine(const struct arguments *arguments)
{
    const char *what = arguments->word_count > 1 ? arguments->words[1] : "";

    if (arguments->word_count == 2 && strcmp(what, "list") == 0)
        return list(arguments);
    if (arguments->word_count == 3 && strcmp(what, "show") == 0)
        return show(arguments, arguments->words[2]);
    if (arguments->word_count == 3 && strcmp(what, "release") == 0)
        return let_go(arguments, arguments->words[2]);
    if (arguments->word_count == 3 && strcmp(what, "check") == 0)
        return quarantine_check(arguments, arguments->words[2]);
    if (arguments->word_count == 3 && strcmp(what, "repair") == 0)
        return quarantine_repair(arguments, arguments->words[2]);
    fprintf(
        stderr,
        "usage: holdfast quarantine list | show PLAYER | check PLAYER\n"
        "       holdfast quarantine repair PLAYER --reason TEXT [--rows KEY,..] [--rebuild]\n"
        "           [--sections NAME:SCHEMA,..] [--balances CURRENCY=AMOUNT,..] [--dry-run]\n"
        "       holdfast quarantine release PLAYER --reason TEXT [--made UID,CURRENCY=AMOUNT]\n");
    return 2;
}
