/*
 * Connect streams over HTTP/1.1: the request is one message in an envelope, the answer is any
 * number of them and a last one that tells how it ended.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "client/sdk/client.h"
#include "client/sdk/client_private.h"
#include "runtime/base/check.h"

#define ENVELOPE_BYTES 5u
#define FLAG_END       0x02u
#define HTTP_OK        200L

struct incoming {
    const struct client_stream *stream;
    CURL *curl;
    struct buf bytes; /* Of messages that have not come whole. */
    struct buf *body; /* Of an error. */
    bool told;        /* The stream said how it ended. */
    bool failed;      /* ... with an error, in `body`. */
    bool stopped;     /* By `message`. */
};

/* {"error": {...}} of the last message; without one it ended well. */
static void take_end(struct incoming *incoming, struct slice json)
{
    json_t *end = json_loadb((const char *)json.data, json.size, 0, NULL);
    const json_t *error = json_object_get(end, "error");

    incoming->told = end != NULL;
    incoming->failed = error != NULL;
    if (error != NULL) {
        char *text = json_dumps(error, JSON_COMPACT | JSON_ENCODE_ANY);
        CHECK(text != NULL);
        buf_printf(incoming->body, "%s", text);
        free(text);
    }
    json_decref(end);
}

/* False: `message` wants no more. */
static bool take_messages(struct incoming *incoming)
{
    struct buf *bytes = &incoming->bytes;

    while (bytes->size >= ENVELOPE_BYTES && !incoming->told && !incoming->stopped) {
        const uint8_t *at = bytes->data;
        uint32_t size =
            (uint32_t)at[1] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 8 | (uint32_t)at[4];
        if (bytes->size - ENVELOPE_BYTES < size)
            break;
        const struct slice json = { at + ENVELOPE_BYTES, size };
        if ((at[0] & FLAG_END) != 0)
            take_end(incoming, json);
        else
            incoming->stopped = !incoming->stream->message(incoming->stream->user, json);
        buf_consume(bytes, ENVELOPE_BYTES + size);
    }
    return !incoming->stopped;
}

static size_t on_data(char *data, size_t size, size_t count, void *user)
{
    struct incoming *incoming = user;
    long status = 0;

    curl_easy_getinfo(incoming->curl, CURLINFO_RESPONSE_CODE, &status);
    struct buf *into = status == HTTP_OK ? &incoming->bytes : incoming->body;
    if (into->size + size * count > CLIENT_ANSWER_BYTES_MAX)
        return 0;
    buf_append(into, data, size * count);
    if (status == HTTP_OK && !take_messages(incoming))
        return 0;
    return size * count;
}

static CURLcode perform(struct client *client, struct incoming *incoming, char why[CURL_ERROR_SIZE])
{
    const struct client_stream *stream = incoming->stream;
    struct curl_slist *headers =
        client_headers(client, "Content-Type: application/connect+json", NULL);
    size_t size = strlen(stream->json);
    struct buf url = { 0 }, request = { 0 };

    client_url(client, stream->method, &url);
    buf_put_u8(&request, 0);
    buf_put_u32_be(&request, (uint32_t)size);
    buf_append(&request, stream->json, size);
    curl_easy_setopt(client->curl, CURLOPT_URL, (const char *)url.data);
    curl_easy_setopt(client->curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(client->curl, CURLOPT_POSTFIELDSIZE, (long)request.size);
    curl_easy_setopt(client->curl, CURLOPT_POSTFIELDS, request.data);
    curl_easy_setopt(client->curl, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, incoming);
    curl_easy_setopt(client->curl, CURLOPT_ERRORBUFFER, why);
    curl_easy_setopt(client->curl, CURLOPT_TIMEOUT_MS, 0L);
    curl_easy_setopt(client->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)client->deadline_ms);
    curl_easy_setopt(client->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(client->curl, CURLOPT_LOW_SPEED_TIME, (stream->silence_ms + 999L) / 1000L);
    curl_easy_setopt(client->curl, CURLOPT_NOSIGNAL, 1L);
    CURLcode code = curl_easy_perform(client->curl);
    /* What unary calls do not set by themselves. */
    curl_easy_setopt(client->curl, CURLOPT_POSTFIELDSIZE, -1L);
    curl_easy_setopt(client->curl, CURLOPT_CONNECTTIMEOUT_MS, 0L);
    curl_easy_setopt(client->curl, CURLOPT_LOW_SPEED_TIME, 0L);
    curl_easy_setopt(client->curl, CURLOPT_ERRORBUFFER, NULL);
    curl_slist_free_all(headers);
    buf_deinit(&url);
    buf_deinit(&request);
    return code;
}

enum client_result client_stream(struct client *client, const struct client_stream *stream,
                                 struct buf *body)
{
    struct incoming incoming = { .stream = stream, .curl = client->curl, .body = body };
    char why[CURL_ERROR_SIZE] = "";
    long status = 0;

    CHECK(stream->message != NULL && stream->silence_ms > 0);
    buf_clear(body);
    CURLcode code = perform(client, &incoming, why);
    curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
    buf_deinit(&incoming.bytes);
    if (incoming.stopped || (incoming.told && !incoming.failed))
        return CLIENT_OK;
    if (incoming.failed || (code == CURLE_OK && status != HTTP_OK))
        return client_error_read(buf_slice(body)).result;
    buf_clear(body);
    if (code == CURLE_OK)
        buf_printf(body, "the stream broke off");
    else
        buf_printf(body, "%s", why[0] != 0 ? why : curl_easy_strerror(code));
    return client_never_sent(client->curl, code) ? CLIENT_UNREACHABLE : CLIENT_UNKNOWN;
}
