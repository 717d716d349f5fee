#include "client/cli/console/admin_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/console/answer.h"
#include "client/cli/console/clock.h"
#include "client/cli/console/connection.h"
#include "runtime/base/check.h"

#define PAGES_MAX 64

struct admin_client {
    struct client *client;
    char why[ADMIN_WHY_BYTES];
    uint32_t took_ms;
};

err admin_client_new(const struct arguments *arguments, const char *endpoint,
                     struct admin_client **ret_client)
{
    struct admin_client *client = mem_zalloc(sizeof *client);
    err e = connection_new(arguments, endpoint, CONNECTION_CANONICAL, &client->client);

    if (e != ERR_OK) {
        free(client);
        return e;
    }
    *ret_client = client;
    return ERR_OK;
}

void admin_client_free(struct admin_client *client)
{
    if (client == NULL)
        return;
    client_free(client->client);
    free(client);
}

static void keep_why(struct admin_client *client, enum client_result result, const struct buf *body)
{
    struct buf text = { 0 };

    if (result == CLIENT_OK)
        buf_printf(&text, "the answer is no JSON");
    else if (result == CLIENT_UNKNOWN)
        buf_printf(&text, "no answer in time");
    else if (!error_format(buf_slice(body), &text))
        buf_append(&text, body->data, body->size);
    snprintf(client->why, sizeof client->why, "%.*s", (int)text.size, (const char *)text.data);
    buf_deinit(&text);
}

json_t *admin_call(struct admin_client *client, const char *method, json_t *request)
{
    char *text = json_dumps(request, JSON_COMPACT);
    struct buf body = { 0 };
    json_t *answer = NULL;
    uint64_t begun_ms = monotonic_ms();

    CHECK(text != NULL);
    enum client_result result = client_call(client->client, method, text, &body);
    client->took_ms = (uint32_t)(monotonic_ms() - begun_ms);
    free(text);
    json_decref(request);
    if (result == CLIENT_OK)
        answer = json_loadb((const char *)body.data, body.size, 0, NULL);
    if (answer == NULL)
        keep_why(client, result, &body);
    buf_deinit(&body);
    return answer;
}

const char *admin_client_why(const struct admin_client *client)
{
    return client->why;
}

uint32_t admin_client_took_ms(const struct admin_client *client)
{
    return client->took_ms;
}

json_t *admin_list(struct admin_client *client, const char *method, const char *rows,
                   json_t *request, bool *ret_whole)
{
    json_t *all = json_array();

    *ret_whole = false;
    for (int i = 0; i < PAGES_MAX && !*ret_whole; i++) {
        json_t *page = admin_call(client, method, json_incref(request));
        if (page == NULL)
            break;
        json_array_extend(all, json_object_get(page, rows));
        json_object_set_new(request, "cursor", json_string(answer_text(page, "nextCursor")));
        *ret_whole = answer_text(page, "nextCursor")[0] == 0;
        json_decref(page);
    }
    json_decref(request);
    return all;
}
