#include "client/cli/verbs/ledger_export.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/help.h"
#include "client/cli/call/ledger_chain.h"
#include "client/cli/console/output.h"

#define PAGE_ENTRIES 200
#define PAGE_PLAYERS 500
#define FAULTS_SHOWN 1000u

const struct command_option option_player = {
    .flag = "player",
    .value = "PLAYER",
    .meaning = "whose ledger",
};
const struct command_option option_all = { .flag = "all", .meaning = "of all players" };

/* Borrows `value`. False: standard output is broken. */
static bool print_line(const char *player, const char *name, json_t *value)
{
    json_t *line = json_pack("{s:s, s:O}", "playerId", player, name, value);
    bool good = json_dumpf(line, stdout, JSON_COMPACT) == 0 && putchar('\n') != EOF;

    json_decref(line);
    return good;
}

static int broken_output(void)
{
    fprintf(stderr, "holdfast: standard output cannot be written\n");
    return 1;
}

static json_t *read_page(const struct arguments *arguments, const char *player, const char *cursor,
                         int *ret_code)
{
    return call_json(arguments, "LedgerService/ListEntries",
                     json_pack("{s:s, s:i, s:s, s:b}", "playerId", player, "pageSize", PAGE_ENTRIES,
                               "cursor", cursor, "ascending", true),
                     ret_code);
}

static json_t *head_of(const json_t *page)
{
    const char *seq = json_string_value(json_object_get(page, "headSeq"));
    const char *hash = json_string_value(json_object_get(page, "headHash"));

    return json_pack("{s:s, s:s}", "seq", seq != NULL ? seq : "0", "hash",
                     hash != NULL ? hash : "");
}

static bool print_page(const char *player, const json_t *page)
{
    json_t *entry;
    size_t i;

    json_array_foreach(json_object_get(page, "entries"), i, entry)
    {
        if (!print_line(player, "entry", entry))
            return false;
    }
    return true;
}

/* Entries that are written meanwhile are in it too: its head is that of its last page. */
static int export_player(const struct arguments *arguments, const char *player)
{
    const char *cursor = "";
    json_t *page = NULL;
    int code = 0;

    while (cursor != NULL) {
        json_t *next = read_page(arguments, player, cursor, &code);
        json_decref(page);
        page = next;
        if (page == NULL)
            return code;
        if (!print_page(player, page))
            code = broken_output();
        cursor = code == 0 ? json_string_value(json_object_get(page, "nextCursor")) : NULL;
    }
    json_t *head = head_of(page);
    if (code == 0 && !print_line(player, "head", head))
        code = broken_output();
    json_decref(head);
    json_decref(page);
    return code;
}

static int export_players(const struct arguments *arguments, const json_t *players)
{
    const json_t *player;
    int code = 0;
    size_t i;

    json_array_foreach(players, i, player)
    {
        const char *id = json_string_value(json_object_get(player, "playerId"));
        if (code == 0 && id != NULL && json_object_get(player, "ledgerSeq") != NULL)
            code = export_player(arguments, id);
    }
    return code;
}

static int export_shard(const struct arguments *arguments, int shard)
{
    const char *cursor = "";
    json_t *page = NULL;
    int code = 0;

    while (cursor != NULL) {
        json_t *next = call_json(arguments, "AdminService/ListPlayers",
                                 json_pack("{s:i, s:i, s:s}", "shard", shard, "pageSize",
                                           PAGE_PLAYERS, "cursor", cursor),
                                 &code);
        json_decref(page);
        page = next;
        if (page == NULL)
            return code;
        code = export_players(arguments, json_object_get(page, "players"));
        cursor = code == 0 ? json_string_value(json_object_get(page, "nextCursor")) : NULL;
    }
    json_decref(page);
    return code;
}

static int export_all(const struct arguments *arguments)
{
    int code;
    json_t *cluster = call_json(arguments, "AdminService/GetCluster", json_object(), &code);
    int shards = (int)json_integer_value(json_object_get(cluster, "shardCount"));

    json_decref(cluster);
    for (int shard = 0; shard < shards && code == 0; shard++)
        code = export_shard(arguments, shard);
    return code;
}

int ledger_export(const struct arguments *arguments)
{
    const char *player = option_text(arguments, &option_player);
    bool all = option_is_set(arguments, &option_all);

    if (all == (player[0] != 0))
        return refuse_usage(arguments);
    int code = all ? export_all(arguments) : export_player(arguments, player);
    if (code == 0 && fflush(stdout) != 0)
        code = broken_output();
    return code;
}

static void print_fault(void *user, const char *text)
{
    const struct chain_check *check = user;

    if (check->faults <= FAULTS_SHOWN)
        printf("%s\n", text);
}

/* False: a line above the limit, or the file cannot be read. */
static bool check_lines(FILE *file, struct chain_check *check)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    bool good = true;

    while (good && (size = getline(&line, &capacity, file)) > 0) {
        good = (size_t)size <= CHAIN_LINE_MAX;
        if (line[size - 1] == '\n')
            size--;
        if (good)
            chain_check_line(check, (struct slice){ (const uint8_t *)line, (size_t)size });
    }
    free(line);
    return good && ferror(file) == 0;
}

int ledger_verify(const struct arguments *arguments)
{
    const char *path = arguments->words[0];
    struct chain_check check = { .fault = print_fault };
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");

    check.user = &check;
    if (file == NULL) {
        fprintf(stderr, "holdfast: %s cannot be opened\n", path);
        return 2;
    }
    bool good = check_lines(file, &check);
    if (file != stdin)
        fclose(file);
    if (!good) {
        fprintf(stderr, "holdfast: %s cannot be read, or has a line above %u bytes\n", path,
                CHAIN_LINE_MAX);
        return 1;
    }
    chain_check_end(&check);
    if (wants_json(arguments)) {
        json_t *sum = json_pack("{s:I, s:I, s:I}", "players", (json_int_t)check.players, "entries",
                                (json_int_t)check.entries, "faults", (json_int_t)check.faults);
        print_json(sum);
        json_decref(sum);
    } else {
        printf("%" PRIu64 " players, %" PRIu64 " entries, %" PRIu64 " faults\n", check.players,
               check.entries, check.faults);
    }
    return check.faults == 0 ? 0 : 1;
}
