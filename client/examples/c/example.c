/*
 * join -> grant -> leave from C, through client/sdk: the SDK repeats a call under the same op_id
 * while its outcome is unknown. HOLDFAST_ENDPOINT names the router; the first argument the player.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "client/sdk/client.h"

/* Calls, and prints what went wrong. NULL: refused, unreachable, or unknown after all tries. */
static json_t *call(struct client *client, const char *method, json_t *request)
{
    static const char *const results[] = { "ok", "refused", "outcome unknown", "not reachable" };
    struct buf body = { 0 };
    json_t *answer = NULL;
    char *text = request != NULL ? json_dumps(request, JSON_COMPACT) : NULL;

    if (text != NULL) {
        enum client_result result = client_call(client, method, text, &body);
        if (result == CLIENT_OK)
            answer = json_loadb((const char *)body.data, body.size, 0, NULL);
        else
            fprintf(stderr, "%s: %s: %.*s\n", method, results[result], (int)body.size,
                    (const char *)body.data);
    }
    free(text);
    json_decref(request);
    buf_deinit(&body);
    return answer;
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

/* One op_id for both calls: the second is answered with the first one's result. */
static bool grant_twice(struct client *client, const char *player, const char *token)
{
    char op_id[37];

    client_op_id(op_id);
    for (int i = 0; i < 2; i++) {
        json_t *answer =
            call(client, "LedgerService/Grant",
                 json_pack("{s:s, s:s, s:s, s:s+, s:[{s:s, s:i}]}", "playerId", player, "opId",
                           op_id, "reason", "match_reward", "authority", "session:", token,
                           "currencies", "currency", "gold", "amount", 100));
        if (answer == NULL)
            return false;
        const json_t *write = json_object_get(answer, "write");
        const json_t *balance = json_array_get(json_object_get(answer, "balances"), 0);
        printf("granted: balance %s%s\n", text_of(balance, "amount"),
               json_is_true(json_object_get(write, "duplicate")) ? " (duplicate)" : "");
        json_decref(answer);
    }
    return true;
}

static bool leave(struct client *client, const char *player, const char *token)
{
    char op_id[37];

    client_op_id(op_id);
    /* A last save and the release, in one entry. */
    json_t *answer =
        call(client, "SessionService/EndSession",
             json_pack("{s:s, s:s, s:s+, s:[{s:s, s:i, s:s}]}", "playerId", player, "opId", op_id,
                       "authority", "session:", token, "edits", "name", "progression",
                       "schemaVersion", 1, "merge", "{\"last_map\":\"harbour\"}"));
    json_decref(answer);
    return answer != NULL;
}

static bool play(struct client *client, const char *player, const char *incarnation)
{
    char op_id[37];

    client_op_id(op_id);
    json_t *joined = call(client, "SessionService/StartSession",
                          json_pack("{s:s, s:s, s:s, s:s}", "playerId", player, "opId", op_id,
                                    "incarnation", incarnation, "mode", "START_MODE_STEAL"));
    if (joined == NULL)
        return false;
    printf("joined: fence %s\n", text_of(joined, "fence"));
    const char *token = text_of(joined, "token");
    bool done = grant_twice(client, player, token) && leave(client, player, token);
    json_decref(joined);
    return done;
}

int main(int argc, char **argv)
{
    const char *endpoint = getenv("HOLDFAST_ENDPOINT");
    const char *player = argc > 1 ? argv[1] : "c-player";
    struct client_options options = { .endpoint = endpoint ? endpoint : "http://127.0.0.1:7400" };
    struct client *client;

    if (client_new(&options, &client) != ERR_OK)
        return 2;
    json_t *server =
        call(client, "SessionService/RegisterServer", json_pack("{s:s}", "name", "c-example"));
    bool done = server != NULL && play(client, player, text_of(server, "incarnation"));
    if (server != NULL)
        json_decref(
            call(client, "SessionService/UnregisterServer",
                 json_pack("{s:O}", "incarnation", json_object_get(server, "incarnation"))));
    json_decref(server);
    client_free(client);
    return done ? 0 : 1;
}
