#include "client/sdk/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>

#include <jansson.h>

#include "client/sdk/client_private.h"
#include "idl/method.h"
#include "runtime/base/check.h"
#include "runtime/base/id.h"

#define DEADLINE_MS_DEFAULT  10000u
#define TRIES_MAX            3u
#define RETRY_BASE_MS        1000u
#define RETRY_CAP_MS         8000u
#define RETRY_JITTER_PERCENT 20u
#define PACKAGE              "holdfast.v1."
#define DETAIL_TYPE          "holdfast.v1.ErrorDetail"

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint32_t random_below(uint32_t bound)
{
    uint32_t random = 0;

    CHECK(getrandom(&random, sizeof random, 0) == (ssize_t)sizeof random);
    return random % bound;
}

void client_op_id(char ret_text[37])
{
    struct timespec t;
    uint8_t random[10];

    clock_gettime(CLOCK_REALTIME, &t);
    CHECK(getrandom(random, sizeof random, 0) == (ssize_t)sizeof random);
    struct uuid uuid =
        uuid_v7_make((uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000, random);
    uuid_print(&uuid, ret_text);
}

err client_new(const struct client_options *options, struct client **ret_client)
{
    if (options->endpoint == NULL || options->endpoint[0] == 0)
        return ERR_INVALID;
    struct client *client = mem_zalloc(sizeof *client);
    client->curl = curl_easy_init();
    CHECK(client->curl != NULL);
    client->endpoint = strdup(options->endpoint);
    client->deadline_ms = options->deadline_ms > 0 ? options->deadline_ms : DEADLINE_MS_DEFAULT;
    client->headers = curl_slist_append(NULL, "Expect:");
    if (!options->plain_json)
        client->headers = curl_slist_append(client->headers, "Connect-Protocol-Version: 1");
    if (options->api_key != NULL) {
        struct buf line = { 0 };
        buf_printf(&line, "Authorization: Bearer %s", options->api_key);
        buf_put_u8(&line, 0);
        client->headers = curl_slist_append(client->headers, (const char *)line.data);
        buf_deinit(&line);
    }
    if (options->ca_file != NULL)
        curl_easy_setopt(client->curl, CURLOPT_CAINFO, options->ca_file);
    *ret_client = client;
    return ERR_OK;
}

void client_free(struct client *client)
{
    if (client == NULL)
        return;
    curl_slist_free_all(client->headers);
    curl_easy_cleanup(client->curl);
    free(client->endpoint);
    free(client);
}

static size_t on_data(char *data, size_t size, size_t count, void *user)
{
    struct buf *body = user;

    if (body->size + size * count > CLIENT_ANSWER_BYTES_MAX)
        return 0;
    buf_append(body, data, size * count);
    return size * count;
}

void client_url(const struct client *client, const char *method, struct buf *url)
{
    buf_clear(url);
    buf_printf(url, "%s/%s%s", client->endpoint,
               strncmp(method, "holdfast.", strlen("holdfast.")) == 0 ? "" : PACKAGE, method);
    buf_put_u8(url, 0);
}

struct curl_slist *client_headers(const struct client *client, const char *content_type,
                                  const char *extra)
{
    struct curl_slist *headers = curl_slist_append(NULL, content_type);

    for (struct curl_slist *h = client->headers; h != NULL; h = h->next)
        headers = curl_slist_append(headers, h->data);
    return extra != NULL ? curl_slist_append(headers, extra) : headers;
}

bool client_never_sent(CURL *curl, CURLcode code)
{
    long sent_bytes = 0;

    curl_easy_getinfo(curl, CURLINFO_REQUEST_SIZE, &sent_bytes);
    if (sent_bytes > 0) /* Some of these codes are of answers, too, which libcurl does not take. */
        return false;
    return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
           code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL ||
           code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE;
}

/* In JSON as the router writes it: plain, or Connect's with `debug`; without defaults. NULL: it has
 * none of ours. */
static const json_t *find_detail(const json_t *error)
{
    const json_t *detail = json_object_get(error, "error");
    size_t i;

    if (json_is_object(detail))
        return detail;

    json_array_foreach(json_object_get(error, "details"), i, detail)
    {
        const char *type = json_string_value(json_object_get(detail, "type"));
        const json_t *fields = json_object_get(detail, "debug");
        if (type != NULL && strcmp(type, DETAIL_TYPE) == 0 && json_is_object(fields))
            return fields;
    }
    return NULL;
}

/* Whether the field says `name`, as canonical JSON has it, behind `prefix`, or as plain JSON has
 * it, in lower case. */
static bool says(const json_t *object, const char *key, const char *prefix, const char *name)
{
    const char *found = json_string_value(json_object_get(object, key));
    size_t size = strlen(prefix);

    if (found == NULL)
        return false;
    return strcasecmp(strncmp(found, prefix, size) == 0 ? found + size : found, name) == 0;
}

struct client_error client_error_read(struct slice json)
{
    json_t *error = json_loadb((const char *)json.data, json.size, 0, NULL);
    const json_t *detail = find_detail(error);
    json_int_t wait_ms = json_integer_value(json_object_get(detail, "retryAfterMs"));
    struct client_error read = { .result = CLIENT_REFUSED };

    /* Without an action it is no error of a router. */
    if (says(detail, "outcome", "OUTCOME_", "UNKNOWN") || json_object_get(detail, "action") == NULL)
        read.result = CLIENT_UNKNOWN;
    else if (says(detail, "action", "ACTION_", "RETRY_SAME"))
        read = (struct client_error){ CLIENT_LATER, false,
                                      wait_ms < UINT32_MAX ? (uint32_t)wait_ms : UINT32_MAX };
    else
        read.settles = says(detail, "outcome", "OUTCOME_", "REFUSED") ||
                       says(detail, "code", "ERROR_CODE_", "OPERATION_ID_MISMATCH");
    json_decref(error);
    return read;
}

/* CLIENT_OK, CLIENT_UNREACHABLE, or as the error says. */
static struct client_error call_once(struct client *client, const char *url, const char *json,
                                     uint32_t left_ms, struct buf *body)
{
    char timeout[64];
    char why[CURL_ERROR_SIZE] = "";
    long status = 0;

    snprintf(timeout, sizeof timeout, "Connect-Timeout-Ms: %u", left_ms);
    struct curl_slist *headers = client_headers(client, "Content-Type: application/json", timeout);
    buf_clear(body);
    curl_easy_setopt(client->curl, CURLOPT_URL, url);
    curl_easy_setopt(client->curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(client->curl, CURLOPT_POSTFIELDS, json);
    curl_easy_setopt(client->curl, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, body);
    curl_easy_setopt(client->curl, CURLOPT_ERRORBUFFER, why);
    /* The router answers within its deadline; a little more, so that its word is heard. */
    curl_easy_setopt(client->curl, CURLOPT_TIMEOUT_MS, (long)left_ms + 500L);
    curl_easy_setopt(client->curl, CURLOPT_NOSIGNAL, 1L);
    CURLcode code = curl_easy_perform(client->curl);
    curl_easy_setopt(client->curl, CURLOPT_ERRORBUFFER, NULL);
    curl_slist_free_all(headers);
    if (code != CURLE_OK) {
        buf_clear(body);
        buf_printf(body, "%s", why[0] != 0 ? why : curl_easy_strerror(code));
        return (struct client_error){ .result = client_never_sent(client->curl, code)
                                                    ? CLIENT_UNREACHABLE
                                                    : CLIENT_UNKNOWN };
    }
    curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status == 200)
        return (struct client_error){ .result = CLIENT_OK, .settles = true };
    return client_error_read(buf_slice(body));
}

static uint64_t pause_ms(const struct client_error *last, uint32_t lost)
{
    if (last->result == CLIENT_LATER)
        return last->retry_after_ms +
               (uint64_t)random_below(last->retry_after_ms / 100 * RETRY_JITTER_PERCENT + 1);
    uint32_t base_ms = RETRY_BASE_MS << (lost - 1);
    uint32_t capped_ms = base_ms < RETRY_CAP_MS ? base_ms : RETRY_CAP_MS;
    uint32_t span_ms = capped_ms * RETRY_JITTER_PERCENT / 100;
    return capped_ms - span_ms + random_below(2 * span_ms + 1);
}

bool client_may_repeat(const char *method)
{
    bool whole = strncmp(method, "holdfast.", strlen("holdfast.")) == 0;
    struct buf name = { 0 };

    buf_printf(&name, "%s%s", whole ? "" : PACKAGE, method);
    const struct method_info *known = method_find_name(buf_slice(&name));
    buf_deinit(&name);
    return known != NULL && (known->traits & METHOD_SENT_ONCE) == 0;
}

/* False: the call ends here, with what is known. `lost` counts tries that were unknown or not sent.
 */
static bool wait_for_another(const struct client_error *last, uint32_t *lost, uint64_t end_ms)
{
    if (last->result == CLIENT_OK || last->result == CLIENT_REFUSED)
        return false;
    if (last->result != CLIENT_LATER && ++*lost == TRIES_MAX)
        return false;
    uint64_t wait_ms = pause_ms(last, *lost);
    if (now_ms() + wait_ms >= end_ms)
        return false;
    struct timespec t = { .tv_sec = (time_t)(wait_ms / 1000),
                          .tv_nsec = (long)(wait_ms % 1000) * 1000000 };
    nanosleep(&t, NULL);
    return true;
}

enum client_result client_call(struct client *client, const char *method, const char *json,
                               struct buf *body)
{
    uint64_t end_ms = now_ms() + client->deadline_ms;
    uint32_t lost = 0;
    bool once = !client_may_repeat(method);
    struct client_error last;
    struct buf url = { 0 };
    bool unknown = false;

    client_url(client, method, &url);
    do {
        uint64_t now = now_ms();
        last = call_once(client, (const char *)url.data, json,
                         now < end_ms ? (uint32_t)(end_ms - now) : 1, body);
        unknown = !last.settles && (unknown || last.result == CLIENT_UNKNOWN);
    } while (!(once && unknown) && wait_for_another(&last, &lost, end_ms));
    buf_deinit(&url);
    return unknown ? CLIENT_UNKNOWN : last.result;
}
