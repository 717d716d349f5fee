#include "runtime/rpc/h2_peer.h"

#include <string.h>

#include "runtime/base/check.h"

static struct answer *answer_of(struct peer *peer, int32_t stream_id)
{
    for (size_t i = 0; i < peer->answer_count; i++) {
        if (peer->answers[i].stream_id == stream_id)
            return &peer->answers[i];
    }
    return NULL;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *user)
{
    struct answer *answer = answer_of(user, frame->hd.stream_id);

    (void)session;
    (void)flags;
    if (answer != NULL)
        buf_printf(&answer->headers, "%.*s: %.*s\n", (int)name_size, name, (int)value_size, value);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data,
                   size_t size, void *user)
{
    struct answer *answer = answer_of(user, stream_id);

    (void)session;
    (void)flags;
    if (answer != NULL)
        buf_append(&answer->body, data, size);
    return 0;
}

static int on_close(nghttp2_session *session, int32_t stream_id, uint32_t error_code, void *user)
{
    struct peer *peer = user;
    struct answer *answer = answer_of(peer, stream_id);

    (void)session;
    peer->closed_count++;
    if (answer != NULL) {
        answer->closed = true;
        answer->error_code = error_code;
    }
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct peer *peer = user;

    (void)session;
    if (frame->hd.type == NGHTTP2_GOAWAY)
        peer->went_away = true;
    return 0;
}

void peer_flush(struct peer *peer)
{
    const uint8_t *bytes;
    ssize_t size;

    while ((size = nghttp2_session_mem_send(peer->session, &bytes)) > 0)
        client_send(&peer->client, bytes, (size_t)size);
}

void peer_connect(struct fixture *f, struct peer *peer)
{
    nghttp2_session_callbacks *callbacks;

    *peer = (struct peer){ .client = client_connect(f) };
    CHECK(nghttp2_session_callbacks_new(&callbacks) == 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    CHECK(nghttp2_session_client_new(&peer->session, callbacks, peer) == 0);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(peer->session, NGHTTP2_FLAG_NONE, NULL, 0);
    peer_flush(peer);
}

void peer_close(struct peer *peer)
{
    nghttp2_session_del(peer->session);
    for (size_t i = 0; i < peer->answer_count; i++) {
        buf_deinit(&peer->answers[i].headers);
        buf_deinit(&peer->answers[i].body);
    }
    client_close(&peer->client);
}

static ssize_t read_body(nghttp2_session *session, int32_t stream_id, uint8_t *ret_bytes,
                         size_t size, uint32_t *ret_flags, nghttp2_data_source *source, void *user)
{
    struct peer *peer = user;

    (void)session;
    (void)stream_id;
    (void)source;
    if (size > peer->sending.size)
        size = peer->sending.size;
    if (size > 0)
        memcpy(ret_bytes, peer->sending.data, size);
    if (size > 0)
        peer->sending = (struct slice){ peer->sending.data + size, peer->sending.size - size };
    if (peer->sending.size == 0)
        *ret_flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)size;
}

nghttp2_nv nv(const char *name, const char *value)
{
    return (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                         strlen(value), NGHTTP2_NV_FLAG_NONE };
}

struct answer *peer_call(struct peer *peer, const char *path, const char *type, struct slice body,
                         const char *const extra[2])
{
    nghttp2_nv fields[8] = {
        nv(":method", "POST"), nv(":scheme", "http"),    nv(":authority", "x"),
        nv(":path", path),     nv("content-type", type), nv("te", "trailers")
    };
    nghttp2_data_provider provider = { .read_callback = read_body };
    size_t count = 6;

    if (extra != NULL)
        fields[count++] = nv(extra[0], extra[1]);
    peer->sending = body;
    int32_t id = nghttp2_submit_request(peer->session, NULL, fields, count, &provider, NULL);
    CHECK(id > 0 && peer->answer_count < STREAMS_MAX);
    struct answer *answer = &peer->answers[peer->answer_count++];
    answer->stream_id = id;
    peer_flush(peer);
    return answer;
}

void peer_take(struct peer *peer)
{
    for (;;) {
        uint8_t bytes[65536];
        size_t size = client_take(&peer->client, bytes, sizeof bytes);
        if (size == 0 || nghttp2_session_mem_recv(peer->session, bytes, size) < 0)
            return;
        peer_flush(peer);
    }
}

struct awaited {
    struct peer *peer;
    struct answer *answer;
};

static bool has_come(void *user)
{
    struct awaited *awaited = user;

    peer_take(awaited->peer);
    return awaited->peer->client.closed || (awaited->answer != NULL && awaited->answer->closed);
}

bool peer_await(struct fixture *f, struct peer *peer, struct answer *answer)
{
    struct awaited awaited = { peer, answer };

    return loop_run_until(f->loop, has_come, &awaited, FIXTURE_WAIT_MS) &&
           (answer == NULL || answer->closed);
}

bool answer_has(struct answer *answer, const char *line)
{
    buf_put_u8(&answer->headers, 0);
    answer->headers.size--;
    return strstr((char *)answer->headers.data, line) != NULL;
}

bool body_is(const struct answer *answer, struct slice expected)
{
    return slice_equal(buf_slice(&answer->body), expected);
}
