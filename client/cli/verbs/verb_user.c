/* user: what is shown of players and kept for them. docs/users.md. */
#include <stdio.h>
#include <string.h>

#include "client/cli/call/target_call.h"
#include "client/cli/console/answer.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"

static const struct command_option option_name = {
    .flag = "name",
    .value = "TEXT",
    .meaning = "the display name, at most 64 bytes",
};
static const struct command_option option_attributes = {
    .flag = "attributes",
    .value = "JSON",
    .meaning = "a merge patch of the attributes",
};
static const struct command_option option_settings = {
    .flag = "settings",
    .value = "JSON",
    .meaning = "a merge patch of the settings",
};
static const struct command_option option_connection = {
    .flag = "connection",
    .value = "NAME",
    .meaning = "a connection that is set, with --ttl-ms or --incarnation",
};
static const struct command_option option_status = {
    .flag = "status",
    .value = "JSON",
    .meaning = "what others are shown of the connection, at most 1 KiB",
};
static const struct command_option option_incarnation = {
    .flag = "incarnation",
    .value = "INCARNATION",
    .meaning = "the game server by which the connection lives, instead of --ttl-ms",
};
static const struct command_option option_ttl_ms = {
    .flag = "ttl-ms",
    .value = "MS",
    .meaning = "how long the connection is shown, 1000 to 86400000",
};
static const struct command_option option_disconnect = {
    .flag = "disconnect",
    .value = "NAMES",
    .meaning = "connections that are taken away, with commas between",
};

static const struct command_option option_authority = {
    .flag = "authority",
    .value = "TEXT",
    .initial = "unheld",
    .meaning = "session:TOKEN of the server that holds the player",
};

static const struct {
    const struct command_option *option;
    const char *field;
} fields[] = {
    { &option_name, "displayName" },        { &option_attributes, "attributes" },
    { &option_settings, "settings" },       { &option_connection, "connection" },
    { &option_status, "status" },           { &option_ttl_ms, "ttlMs" },
    { &option_incarnation, "incarnation" },
};

static const struct column user_columns[] = {
    { .title = "PLAYER", .path = "playerId" },
    { .title = "NAME", .path = "displayName" },
    { .title = "CONNECTIONS", .path = "connectionNames" },
    { .title = "ATTRIBUTES", .path = "attributes" },
    { .title = "SETTINGS", .path = "settings" },
    { .title = "SEEN AT MS", .path = "lastSeenAtMs" },
    { .title = NULL },
};
static const struct column written_columns[] = {
    { .title = "PLAYER", .path = "user.playerId" },
    { .title = "NAME", .path = "user.displayName" },
    { .title = "ATTRIBUTES", .path = "user.attributes" },
    { .title = "SETTINGS", .path = "user.settings" },
    { .title = "CONTEXT", .path = "written.context" },
    { .title = NULL },
};

/* A row for each user that there is; what could not be read is told. How many could not. */
static uint32_t rows_of(const struct arguments *arguments, const json_t *results, json_t *rows)
{
    uint32_t failed = 0;
    json_t *result;
    size_t i, k;

    json_array_foreach((json_t *)(uintptr_t)results, i, result)
    {
        const json_t *error = json_object_get(result, "error");
        const json_t *user = json_object_get(json_object_get(result, "response"), "user");
        struct buf names = { 0 };
        json_t *connection;

        if (error != NULL && i < arguments->word_count) {
            fprintf(stderr, "%s: %s\n", arguments->words[i], answer_text(error, "message"));
            failed++;
        }
        if (user == NULL)
            continue;
        json_array_foreach(json_object_get(user, "connections"), k, connection)
        {
            buf_printf(&names, "%s%s", k > 0 ? "," : "", answer_text(connection, "connection"));
        }
        json_t *row = json_copy((json_t *)(uintptr_t)user);

        json_object_set_new(
            row, "connectionNames",
            json_stringn(names.size > 0 ? (const char *)names.data : "", names.size));
        buf_deinit(&names);
        json_array_append_new(rows, row);
    }
    return failed;
}

static int get(const struct arguments *arguments)
{
    json_t *requests = json_array(), *rows = json_array();
    int code;

    for (uint32_t i = 0; i < arguments->word_count; i++)
        json_array_append_new(requests, json_pack("{s:s}", "playerId", arguments->words[i]));
    json_t *answer = call_json(arguments, "UserService/BatchGetUsers",
                               json_pack("{s:o}", "requests", requests), &code);

    if (answer != NULL) {
        uint32_t failed = rows_of(arguments, json_object_get(answer, "results"), rows);

        if (wants_json(arguments))
            print_json(answer);
        else
            print_table(NULL, rows, user_columns);
        code = failed > 0 ? 1 : code;
    }
    json_decref(rows);
    json_decref(answer);
    return code;
}

static json_t *names_of(const char *text)
{
    json_t *names = json_array();

    while (text[0] != 0) {
        size_t size = strcspn(text, ",");

        json_array_append_new(names, json_stringn(text, size));
        text += size + (text[size] == ',');
    }
    return names;
}

/* The router judges all that is given: its message names the limit. */
static int upsert(const struct arguments *arguments)
{
    json_t *request = json_pack("{s:s}", "playerId", arguments->words[0]);

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const char *text = option_text(arguments, fields[i].option);

        if (text[0] != 0)
            json_object_set_new(request, fields[i].field, json_string(text));
    }
    json_object_set_new(request, "disconnect",
                        names_of(option_text(arguments, &option_disconnect)));
    return target_change_call(arguments, "UserService/UpsertUser", request, written_columns);
}

/* ---- names ---- */

static const struct column version_columns[] = {
    { .title = "VERSION", .path = "write.version" },
    { .title = "DUPLICATE", .path = "write.duplicate" },
    { .title = NULL },
};
static const struct column found_columns[] = {
    { .title = "PLAYER", .path = "playerId" },
    { .title = "NAME", .path = "name" },
    { .title = "TAG", .path = "tag" },
    { .title = "NUMBER", .path = "number" },
    { .title = "CLAIMED AT MS", .path = "claimedAtMs" },
    { .title = NULL },
};

/* NAME#TAG, by its last #; the router says what is wrong with either. */
static void put_name(json_t *request, const char *text)
{
    const char *tag = strrchr(text, '#');
    size_t size = tag != NULL ? (size_t)(tag - text) : strlen(text);

    json_object_set_new(request, "name", json_stringn(text, size));
    json_object_set_new(request, "tag", json_string(tag != NULL ? tag + 1 : ""));
}

static json_t *naming(const struct arguments *arguments)
{
    json_t *request = json_pack("{s:s,s:s}", "playerId", arguments->words[0], "authority",
                                option_text(arguments, &option_authority));

    put_name(request, arguments->words[1]);
    return request;
}

static int claim(const struct arguments *arguments)
{
    return target_change_call(arguments, "UserService/ClaimName", naming(arguments),
                              version_columns);
}

static int rename_user(const struct arguments *arguments)
{
    json_t *request = naming(arguments), *replaces = json_object();

    put_name(replaces, arguments->words[2]);
    json_object_set_new(replaces, "number", json_string(arguments->words[3]));
    json_object_set_new(request, "replaces", replaces);
    return target_change_call(arguments, "UserService/ClaimName", request, version_columns);
}

static int release(const struct arguments *arguments)
{
    json_t *request = naming(arguments);

    json_object_set_new(request, "number", json_string(arguments->words[2]));
    return target_change_call(arguments, "UserService/ReleaseName", request, version_columns);
}

/* The exit code is 1 where no player has the name. */
static int find(const struct arguments *arguments)
{
    json_t *request = json_object();
    int code;

    put_name(request, arguments->words[0]);
    json_t *answer = call_json(arguments, "UserService/FindByName", request, &code);

    if (answer == NULL)
        return code;
    json_t *rows = json_array();

    if (answer_text(answer, "playerId")[0] != 0)
        json_array_append(rows, answer);
    else
        code = 1;
    if (wants_json(arguments))
        print_json(answer);
    else
        print_table(NULL, rows, found_columns);
    json_decref(rows);
    json_decref(answer);
    return code;
}

/* ---- roles and flags ---- */

static const struct command_option option_as = {
    .flag = "authority",
    .value = "TEXT",
    .initial = "system:admin",
    .meaning = "system:payments sets and clears flags, too",
};
static const struct command_option option_add = {
    .flag = "add",
    .value = "NAMES",
    .meaning = "roles that are added, with commas between",
};
static const struct command_option option_remove = {
    .flag = "remove",
    .value = "NAMES",
    .meaning = "roles that are removed, with commas between",
};
static const struct command_option option_set = {
    .flag = "set",
    .value = "NAMES",
    .meaning = "flags that are set until --until-ms, with commas between",
};
static const struct command_option option_clear = {
    .flag = "clear",
    .value = "NAMES",
    .meaning = "flags that are cleared, with commas between",
};
static const struct command_option option_until_ms = {
    .flag = "until-ms",
    .value = "MS",
    .initial = "0",
    .meaning = "when the flags of --set end, in milliseconds since 1970; 0 is never",
};

static const struct column role_columns[] = {
    { .title = "KIND", .path = "kind" },        { .title = "NAME", .path = "name" },
    { .title = "UNTIL MS", .path = "untilMs" }, { .title = "BY", .path = "by" },
    { .title = "AT MS", .path = "atMs" },       { .title = NULL },
};

static void add_rows(json_t *rows, const json_t *answer, const char *list, const char *kind)
{
    json_t *entry;
    size_t i;

    json_array_foreach(json_object_get(answer, list), i, entry)
    {
        json_t *row = json_copy(entry);

        json_object_set_new(row, "kind", json_string(kind));
        json_array_append_new(rows, row);
    }
}

static bool changes_roles(const struct arguments *arguments, json_t *request)
{
    const struct {
        const struct command_option *option;
        const char *field;
    } lists[] = {
        { &option_add, "addRoles" },
        { &option_remove, "removeRoles" },
        { &option_clear, "clearFlags" },
    };
    json_t *flags = names_of(option_text(arguments, &option_set)), *wishes = json_array(), *name;
    bool changes = json_array_size(flags) > 0;
    size_t i;

    json_array_foreach(flags, i, name)
    {
        json_array_append_new(wishes, json_pack("{s:O,s:s}", "name", name, "untilMs",
                                                option_text(arguments, &option_until_ms)));
    }
    json_decref(flags);
    json_object_set_new(request, "setFlags", wishes);
    for (i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        json_t *names = names_of(option_text(arguments, lists[i].option));

        changes |= json_array_size(names) > 0;
        json_object_set_new(request, lists[i].field, names);
    }
    return changes;
}

/* Without a change it tells what stands. */
static int roles(const struct arguments *arguments)
{
    json_t *request = json_pack("{s:s,s:s}", "playerId", arguments->words[0], "authority",
                                option_text(arguments, &option_as));
    int code;

    if (changes_roles(arguments, request))
        return target_change_call(arguments, "UserService/SetUserFlags", request, version_columns);
    json_decref(request);
    json_t *answer = call_json(arguments, "UserService/GetUserFlags",
                               json_pack("{s:s}", "playerId", arguments->words[0]), &code);

    if (answer == NULL)
        return code;
    json_t *rows = json_array();

    add_rows(rows, answer, "roles", "role");
    add_rows(rows, answer, "flags", "flag");
    if (wants_json(arguments))
        print_json(answer);
    else
        print_table(NULL, rows, role_columns);
    json_decref(rows);
    json_decref(answer);
    return code;
}

const struct verb verb_user[] = {
    {
        .words = "user get",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER..",
        .summary = "the name, attributes, settings and connections of players",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = get,
    },
    {
        .words = "user upsert",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER",
        .summary = "write what is given of a user, and make one that there is not",
        .options =
            VERB_OPTIONS(&option_name, &option_attributes, &option_settings, &option_connection,
                         &option_status, &option_ttl_ms, &option_incarnation, &option_disconnect,
                         &option_op_id, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = upsert,
    },
    {
        .words = "user claim",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER NAME#TAG",
        .summary = "give a player a name that no other has",
        .options =
            VERB_OPTIONS(&option_authority, &option_op_id, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = claim,
    },
    {
        .words = "user rename",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER NAME#TAG OLD#TAG NUMBER",
        .summary = "give a player a name in place of its own, by the number of that binding",
        .options =
            VERB_OPTIONS(&option_authority, &option_op_id, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = rename_user,
    },
    {
        .words = "user release",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER NAME#TAG NUMBER",
        .summary = "take a player's name away, by the number of its binding",
        .options =
            VERB_OPTIONS(&option_authority, &option_op_id, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = release,
    },
    {
        .words = "user roles",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER",
        .summary = "the roles and flags of a player, or a change of them",
        .options =
            VERB_OPTIONS(&option_add, &option_remove, &option_set, &option_clear, &option_until_ms,
                         &option_as, &option_op_id, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = roles,
    },
    {
        .words = "user find",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "NAME#TAG",
        .summary = "who has a name",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = find,
    },
    { .words = NULL },
};
