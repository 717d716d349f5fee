#include <stdio.h>

#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"

static const struct column balance_columns[] = {
    { .title = "CURRENCY", .path = "currency" },
    { .title = "AMOUNT", .path = "amount", .otherwise = "0" },
    { .title = NULL },
};
static const struct column item_columns[] = {
    { .title = "ITEM", .path = "uid" },
    { .title = "KIND", .path = "kind" },
    { .title = "ATTRIBUTES", .path = "attributes" },
    { .title = NULL },
};
static const struct column section_columns[] = {
    { .title = "SECTION", .path = "name" },
    { .title = "SCHEMA", .path = "schemaVersion", .otherwise = "0" },
    { .title = "VERSION", .path = "version" },
    { .title = "JSON", .path = "json" },
    { .title = NULL },
};

static const char *text_or(const json_t *value, const char *name, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(value, name));
    return text != NULL ? text : otherwise;
}

static int show(const struct arguments *arguments)
{
    const char *player = arguments->words[0];
    int code;
    json_t *answer = call_json(arguments, "ProfileService/GetProfile",
                               json_pack("{s:s}", "playerId", player), &code);
    json_t *items = code == 0 ? call_json(arguments, "InventoryService/ListItems",
                                          json_pack("{s:s}", "playerId", player), &code)
                              : NULL;
    json_t *session = code == 0 ? call_json(arguments, "AdminService/GetSession",
                                            json_pack("{s:s}", "playerId", player), &code)
                                : NULL;
    json_t *profile = json_object_get(answer, "profile");
    if (code == 0 && wants_json(arguments)) {
        json_object_set(profile, "items", json_object_get(items, "items"));
        json_object_set(profile, "session", session);
        print_json(profile);
    } else if (code == 0) {
        printf("player %s   version %s   session %s %s\n\n", player,
               text_or(profile, "version", "0"), text_or(session, "state", "free"),
               text_or(session, "incarnation", ""));
        print_table(NULL, json_object_get(profile, "balances"), balance_columns);
        putchar('\n');
        print_table(NULL, json_object_get(items, "items"), item_columns);
        putchar('\n');
        print_table(NULL, json_object_get(profile, "sections"), section_columns);
    }
    json_decref(session);
    json_decref(items);
    json_decref(answer);
    return code;
}

const struct verb verb_player[] = {
    {
        .words = "player show",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER",
        .summary = "profile, balances, items and session",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = show,
    },
    { .words = NULL },
};
