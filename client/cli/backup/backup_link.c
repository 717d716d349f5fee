#include "client/cli/backup/backup_link.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/console/answer.h"
#include "client/cli/console/clock.h"
#include "client/cli/console/connection.h"
#include "client/cli/console/options.h"
#include "client/sdk/client.h"
#include "runtime/base/check.h"
#include "runtime/base/base64.h"

#define TRY_AGAIN_MS 60000u
#define PAUSE_MS     50

bool backup_link_open(struct backup_link *link, const struct arguments *arguments)
{
    uint32_t rate;

    *link = (struct backup_link){ 0 };
    if (option_number(arguments, &option_throttle, 1, THROTTLE_MIB_MAX, &rate) != ERR_OK ||
        connection_new(arguments, option_text(arguments, &option_endpoint), CONNECTION_CANONICAL,
                       &link->client) != ERR_OK)
        return false;
    link->rate_bytes_per_s = (uint64_t)rate << 20;
    link->begun_ms = monotonic_ms();
    return true;
}

void backup_link_close(struct backup_link *link)
{
    client_free(link->client);
    *link = (struct backup_link){ 0 };
}

void backup_link_pace(struct backup_link *link, size_t bytes)
{
    uint64_t gone_ms = monotonic_ms() - link->begun_ms;

    link->sent_bytes += bytes;
    uint64_t due_ms = link->sent_bytes * 1000u / link->rate_bytes_per_s;
    if (due_ms > gone_ms)
        sleep_ms(due_ms - gone_ms);
}

static void note_why(struct backup_link *link, const char *method, enum client_result result,
                     const char *code, const struct buf *body)
{
    struct buf text = { 0 };

    if (result == CLIENT_UNREACHABLE)
        buf_printf(&text, "not reachable: ");
    if (!error_format(buf_slice(body), &text))
        buf_append(&text, body->data, body->size);
    snprintf(link->why, sizeof link->why, "%s: %.*s", method, (int)text.size,
             (const char *)text.data);
    link->may_begin_anew = strcmp(code, "NOT_FOUND") == 0 || strcmp(code, "VERSION_CONFLICT") == 0;
    buf_deinit(&text);
}

json_t *backup_link_call(struct backup_link *link, const char *method, json_t *request)
{
    uint64_t end_ms = monotonic_ms() + TRY_AGAIN_MS;
    char *text = json_dumps(request, JSON_COMPACT);
    struct buf body = { 0 };
    json_t *answer = NULL;
    char code[64] = "";

    CHECK(text != NULL);
    json_decref(request);
    enum client_result result = client_call(link->client, method, text, &body);
    while (result != CLIENT_OK) {
        code[0] = 0;
        if (result == CLIENT_REFUSED || result == CLIENT_LATER)
            error_code(buf_slice(&body), code, sizeof code);
        if ((result != CLIENT_LATER && result != CLIENT_UNKNOWN) || monotonic_ms() >= end_ms)
            break;
        sleep_ms(PAUSE_MS);
        result = client_call(link->client, method, text, &body);
    }
    free(text);
    if (result == CLIENT_OK)
        answer = json_loadb((const char *)body.data, body.size, 0, NULL);
    if (answer == NULL)
        note_why(link, method, result, code, &body);
    buf_deinit(&body);
    return answer;
}

json_t *backup_link_ask(struct backup_link *link, struct backup_error *ret_why, const char *method,
                        json_t *request)
{
    json_t *answer = backup_link_call(link, method, request);

    if (answer == NULL)
        backup_why(ret_why, "%s", link->why);
    return answer;
}

bool backup_bytes(const json_t *object, const char *name, struct buf *out)
{
    const json_t *value = json_object_get(object, name);
    size_t size = 0;

    if (value == NULL)
        return true;
    struct slice text = { (const uint8_t *)json_string_value(value), json_string_length(value) };
    if (text.data == NULL ||
        !base64_decode(text, buf_reserve(out, base64_size_max(text.size) + 1), &size))
        return false;
    out->size += size;
    return true;
}

json_t *backup_text(struct slice bytes)
{
    struct buf text = { 0 };

    base64_encode(bytes, true, &text);
    json_t *value = json_stringn((const char *)text.data, text.size);
    buf_deinit(&text);
    return value != NULL ? value : json_string("");
}
