#include "client/cli/backup_link.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/cli/output.h"
#include "client/sdk/client.h"
#include "runtime/base/check.h"
#include "runtime/codec/base64.h"

#define TRY_AGAIN_MS 60000u
#define PAUSE_MS     50
#define RATE_MIB_MAX 100000u
#define ERROR_PREFIX "ERROR_CODE_"

uint64_t backup_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

static void sleep_ms(uint64_t ms)
{
    struct timespec pause = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000L };

    nanosleep(&pause, NULL);
}

bool backup_link_open(struct backup_link *link, const struct arguments *arguments)
{
    struct client_options options = { .endpoint = arguments->endpoint,
                                      .api_key = arguments->key[0] ? arguments->key : NULL };
    uint32_t rate;

    *link = (struct backup_link){ 0 };
    if (argument_number("deadline-ms", arguments->deadline_ms, 1, 60000, &options.deadline_ms) !=
            ERR_OK ||
        argument_number("throttle", arguments->throttle, 1, RATE_MIB_MAX, &rate) != ERR_OK)
        return false;
    if (client_new(&options, &link->client) != ERR_OK) {
        fprintf(stderr, "holdfast: --endpoint names no router\n");
        return false;
    }
    link->rate_bytes_per_s = (uint64_t)rate << 20;
    link->begun_ms = backup_now_ms();
    return true;
}

void backup_link_close(struct backup_link *link)
{
    client_free(link->client);
    *link = (struct backup_link){ 0 };
}

void backup_link_pace(struct backup_link *link, size_t bytes)
{
    uint64_t gone_ms = backup_now_ms() - link->begun_ms;

    link->sent_bytes += bytes;
    uint64_t due_ms = link->sent_bytes * 1000u / link->rate_bytes_per_s;
    if (due_ms > gone_ms)
        sleep_ms(due_ms - gone_ms);
}

/* Of Connect's error JSON, without its prefix; "" when there is none. */
static void error_code(const struct buf *body, char *ret_code, size_t size)
{
    json_t *error = json_loadb((const char *)body->data, body->size, 0, NULL);
    const json_t *detail = json_array_get(json_object_get(error, "details"), 0);
    const char *code = json_string_value(json_object_get(json_object_get(detail, "debug"), "code"));

    if (code != NULL && strncmp(code, ERROR_PREFIX, strlen(ERROR_PREFIX)) == 0)
        code += strlen(ERROR_PREFIX);
    snprintf(ret_code, size, "%s", code != NULL ? code : "");
    json_decref(error);
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
    uint64_t end_ms = backup_now_ms() + TRY_AGAIN_MS;
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
            error_code(&body, code, sizeof code);
        if ((result != CLIENT_LATER && result != CLIENT_UNKNOWN) || backup_now_ms() >= end_ms)
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

uint64_t backup_number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    if (json_is_integer(value))
        return (uint64_t)json_integer_value(value);
    return json_is_string(value) ? strtoull(json_string_value(value), NULL, 10) : 0;
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
