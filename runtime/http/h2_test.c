#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <nghttp2/nghttp2.h>

#include "holdfast/v1/ledger.pb-c.h"
#include "runtime/base/check.h"
#include "runtime/codec/proto_codec.h"
#include "runtime/http/http_fixture.h"

#define STREAMS_MAX 64u

/* What a stream's answer was. */
struct answer {
    int32_t stream_id;
    struct buf headers; /* "name: value\n", trailers too. */
    struct buf body;
    bool closed;
    uint32_t error_code;
};

/* An HTTP/2 client over a raw socket. */
struct peer {
    struct client client;
    nghttp2_session *session;
    struct answer answers[STREAMS_MAX];
    size_t answer_count;
    unsigned closed_count;
    bool went_away;
    struct slice sending; /* Of the request being sent. */
};

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

static void peer_flush(struct peer *peer)
{
    const uint8_t *bytes;
    ssize_t size;

    while ((size = nghttp2_session_mem_send(peer->session, &bytes)) > 0)
        client_send(&peer->client, bytes, (size_t)size);
}

static void peer_connect(struct fixture *f, struct peer *peer)
{
    nghttp2_session_callbacks *callbacks;

    *peer = (struct peer){ .client = client_connect(f) };
    assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    assert_int_equal(nghttp2_session_client_new(&peer->session, callbacks, peer), 0);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(peer->session, NGHTTP2_FLAG_NONE, NULL, 0);
    peer_flush(peer);
}

static void peer_close(struct peer *peer)
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

static nghttp2_nv nv(const char *name, const char *value)
{
    return (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                         strlen(value), NGHTTP2_NV_FLAG_NONE };
}

/* One request, `extra` a header name and value or NULL; returns its answer-to-be. */
static struct answer *peer_call(struct peer *peer, const char *path, const char *type,
                                struct slice body, const char *const extra[2])
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
    assert_true(id > 0 && peer->answer_count < STREAMS_MAX);
    struct answer *answer = &peer->answers[peer->answer_count++];
    answer->stream_id = id;
    peer_flush(peer);
    return answer;
}

struct awaited {
    struct peer *peer;
    struct answer *answer;
};

static bool has_come(void *user)
{
    struct awaited *awaited = user;
    struct peer *peer = awaited->peer;

    for (;;) {
        uint8_t bytes[65536];
        size_t size = client_take(&peer->client, bytes, sizeof bytes);
        if (size == 0)
            break;
        if (nghttp2_session_mem_recv(peer->session, bytes, size) < 0)
            return true;
        peer_flush(peer);
    }
    return peer->client.closed || (awaited->answer != NULL && awaited->answer->closed);
}

static bool peer_await(struct fixture *f, struct peer *peer, struct answer *answer)
{
    struct awaited awaited = { peer, answer };

    return loop_run_until(f->loop, has_come, &awaited, FIXTURE_WAIT_MS) &&
           (answer == NULL || answer->closed);
}

static bool answer_has(struct answer *answer, const char *line)
{
    buf_put_u8(&answer->headers, 0);
    answer->headers.size--;
    return strstr((char *)answer->headers.data, line) != NULL;
}

static bool body_is(const struct answer *answer, struct slice expected)
{
    return slice_equal(buf_slice(&answer->body), expected);
}

static int set_up(void **state)
{
    static struct fixture fixture;

    fixture_init(&fixture);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    fixture_stop(*state);
    return 0;
}

#define BALANCES_ABC SLICE_LITERAL("\0\0\0\0\5\x0A\3abc")

static void grpc_answers_a_message_and_trailers(void **state)
{
    struct fixture *f = *state;
    struct peer peer;

    fixture_start(f);
    peer_connect(f, &peer);
    for (int i = 0; i < 3; i++) {
        struct answer *answer =
            peer_call(&peer, PATH_BALANCES, "application/grpc", BALANCES_ABC, NULL);
        assert_true(peer_await(f, &peer, answer));
        assert_true(answer_has(answer, ":status: 200\n"));
        assert_true(answer_has(answer, "content-type: application/grpc+proto\n"));
        assert_true(answer_has(answer, "grpc-status: 0\n"));
        assert_true(body_is(answer, SLICE_LITERAL("\0\0\0\0\2\x10\3")));
    }
    peer_close(&peer);
}

static void grpc_errors_are_trailers_only(void **state)
{
    static const struct {
        const char *path;
        const char *type;
        const char *bytes;
        size_t size;
        const char *extra[2];
        const char *status;
    } cases[] = {
        { "/holdfast.v1.LedgerService/Nope", "application/grpc", "\0\0\0\0\0", 5, { 0 }, "12" },
        { "/holdfast.internal.v1.NodeService/RenewTokens",
          "application/grpc",
          "\0\0\0\0\0",
          5,
          { 0 },
          "12" },
        { PATH_GRANT, "application/grpc", "\0\0\0\0\2\x0A\5", 7, { 0 }, "3" },
        { PATH_GRANT, "application/grpc", "\0\0\0\0\1", 5, { 0 }, "3" },
        { PATH_GRANT, "application/grpc", "\0\0\0\0", 4, { 0 }, "3" },
        { PATH_GRANT, "application/grpc", "\0\0\0\0\0\0", 6, { 0 }, "3" },
        { PATH_GRANT, "application/grpc", "\0\0\0\0\0\0\0\0\0\0", 10, { 0 }, "12" },
        { PATH_GRANT, "application/grpc", "", 0, { 0 }, "12" },
        { PATH_ENTRIES, "application/grpc", "", 0, { 0 }, "12" },
        { PATH_GRANT, "application/grpc", "\0\xff\xff\xff\xff", 5, { 0 }, "8" },
        { PATH_GRANT, "application/grpc", "\1\0\0\0\0", 5, { 0 }, "13" },
        { PATH_GRANT, "application/grpc", "\1\0\0\0\0", 5, { "grpc-encoding", "identity" }, "13" },
        { PATH_GRANT, "application/grpc", "\x80\0\0\0\0", 5, { 0 }, "13" },
        { PATH_GRANT, "application/grpc", "\0\0\0\0\0", 5, { "grpc-encoding", "br" }, "12" },
        { PATH_GRANT, "application/grpc", "\0\0\0\0\0", 5, { "content-encoding", "gzip" }, "12" },
        { PATH_GRANT, "application/grpc", "\1\0\0\0\1x", 6, { "grpc-encoding", "gzip" }, "3" },
        { PATH_GRANT, "application/grpc", "\0\0\0\0\0", 5, { "grpc-timeout", "5x" }, "3" },
        { PATH_GRANT, "application/grpc", "\0\0\0\0\0", 5, { "grpc-timeout", "0m" }, "4" },
        { PATH_GRANT, "application/grpc+json", "\0\0\0\0\1x", 6, { 0 }, "3" },
    };
    struct fixture *f = *state;
    struct peer peer;

    fixture_start(f);
    peer_connect(f, &peer);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char line[32];
        struct answer *answer =
            peer_call(&peer, cases[i].path, cases[i].type,
                      (struct slice){ (const uint8_t *)cases[i].bytes, cases[i].size },
                      cases[i].extra[0] != NULL ? cases[i].extra : NULL);
        snprintf(line, sizeof line, "grpc-status: %s\n", cases[i].status);
        assert_true(peer_await(f, &peer, answer));
        if (!answer_has(answer, line) || !answer_has(answer, "grpc-status-details-bin: "))
            fail_msg("case %zu: %s", i, (char *)answer->headers.data);
        assert_int_equal(answer->body.size, 0);
        bool lists = answer_has(answer, "grpc-accept-encoding: gzip, identity\n");
        assert_int_equal(lists, strcmp(cases[i].status, "12") == 0 && cases[i].extra[0] != NULL);
    }
    assert_int_equal(f->requests, 0);
    peer_close(&peer);
}

/* gRPC's clients infer a code from these, if no body says another one. */
static void grpc_is_told_of_types_and_verbs_without_a_body(void **state)
{
    static const char *const types[] = { "application/grpc+thrift", "application/grpcx",
                                         "application/grpc-web-text",
                                         "application/grpc+json; charset=latin1" };
    struct fixture *f = *state;
    struct peer peer;

    fixture_start(f);
    peer_connect(f, &peer);
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        struct answer *answer = peer_call(&peer, PATH_GRANT, types[i], BALANCES_ABC, NULL);
        assert_true(peer_await(f, &peer, answer));
        assert_true(answer_has(answer, ":status: 415\n"));
        assert_true(answer_has(answer, "accept-post: "));
        assert_false(answer_has(answer, "content-type: "));
        assert_int_equal(answer->body.size, 0);
    }
    const nghttp2_nv fields[] = { nv(":method", "DELETE"), nv(":scheme", "http"),
                                  nv(":authority", "x"), nv(":path", PATH_GRANT),
                                  nv("content-type", "application/grpc") };
    struct answer *answer = &peer.answers[peer.answer_count++];
    answer->stream_id =
        nghttp2_submit_request(peer.session, NULL, fields, ARRAY_SIZE(fields), NULL, NULL);
    peer_flush(&peer);
    assert_true(peer_await(f, &peer, answer));
    assert_true(answer_has(answer, ":status: 405\n"));
    assert_true(answer_has(answer, "allow: POST\n"));
    assert_int_equal(answer->body.size, 0);
    peer_close(&peer);
}

/* The call is answered in its protocol, and then its stream ends without an error. */
static void a_body_that_does_not_come_is_answered(void **state)
{
    static const struct {
        const char *type;
        const char *line;
        const char *body;
    } cases[] = {
        { "application/grpc", "grpc-status: 4\n", NULL },
        { "application/grpc-web", ":status: 200\n", "grpc-status: 4\r\n" },
        { "application/connect+json", ":status: 200\n", "\"code\":\"deadline_exceeded\"" },
        { "application/json", ":status: 408\n", "\"code\":\"deadline_exceeded\"" },
    };
    struct fixture *f = *state;
    struct peer peer;

    f->config.limits.body_timeout_ms = 200;
    fixture_start(f);
    peer_connect(f, &peer);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const nghttp2_nv fields[] = { nv(":method", "POST"), nv(":scheme", "http"),
                                      nv(":authority", "x"), nv(":path", PATH_GRANT),
                                      nv("content-type", cases[i].type) };
        struct answer *answer = &peer.answers[peer.answer_count++];
        answer->stream_id = nghttp2_submit_headers(peer.session, NGHTTP2_FLAG_NONE, -1, NULL,
                                                   fields, ARRAY_SIZE(fields), NULL);
        peer_flush(&peer);
        assert_true(peer_await(f, &peer, answer));
        if (!answer_has(answer, cases[i].line))
            fail_msg("%s: %s", cases[i].type, (char *)answer->headers.data);
        if (cases[i].body != NULL)
            assert_non_null(
                memmem(answer->body.data, answer->body.size, cases[i].body, strlen(cases[i].body)));
        assert_int_equal(answer->error_code, NGHTTP2_NO_ERROR);
    }
    assert_int_equal(rpc_server_stats(f->server)->timeouts, ARRAY_SIZE(cases));
    peer_close(&peer);
}

static void connect_and_grpc_web_work_over_http_2(void **state)
{
    struct fixture *f = *state;
    struct peer peer;

    fixture_start(f);
    peer_connect(f, &peer);
    struct answer *json = peer_call(&peer, PATH_BALANCES, "application/json",
                                    SLICE_LITERAL("{\"player_id\":\"ab\"}"), NULL);
    struct answer *proto =
        peer_call(&peer, PATH_BALANCES, "application/proto", SLICE_LITERAL("\x0A\2ab"), NULL);
    struct answer *web =
        peer_call(&peer, PATH_BALANCES, "application/grpc-web+proto", BALANCES_ABC, NULL);
    assert_true(peer_await(f, &peer, json));
    assert_true(peer_await(f, &peer, proto));
    assert_true(peer_await(f, &peer, web));
    assert_true(body_is(json, SLICE_LITERAL("{\"version\":\"2\"}")));
    assert_true(body_is(proto, SLICE_LITERAL("\x10\2")));
    assert_true(body_is(web, SLICE_LITERAL("\0\0\0\0\2\x10\3\x80\0\0\0\x10grpc-status: 0\r\n")));
    assert_true(answer_has(web, "content-type: application/grpc-web+proto\n"));
    peer_close(&peer);
}

static void deadline_key_and_trace_reach_the_handler(void **state)
{
    struct fixture *f = *state;
    struct peer peer;
    static const char *const trace[2] = {
        "traceparent", "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
    };
    static const char *const timeout[2] = { "grpc-timeout", "250m" };
    static const char *const key[2] = { "authorization", "Bearer secret" };

    f->keep = true;
    fixture_start(f);
    peer_connect(f, &peer);
    peer_call(&peer, PATH_BALANCES, "application/grpc", BALANCES_ABC, trace);
    peer_call(&peer, PATH_BALANCES, "application/grpc", BALANCES_ABC, timeout);
    peer_call(&peer, PATH_BALANCES, "application/grpc", BALANCES_ABC, key);
    assert_true(fixture_await(f, &f->requests, 3));
    assert_int_equal(f->kept[0]->trace.trace_id[0], 0x01);
    assert_int_equal(f->kept[0]->trace.trace_id[15], 0xEF);
    assert_true(f->kept[1]->deadline_ms <= loop_now_ms(f->loop) + 250);
    assert_true(f->kept[0]->deadline_ms > loop_now_ms(f->loop) + 5000);
    assert_true(slice_equal(f->kept[2]->api_key, SLICE_LITERAL("secret")));
    assert_int_equal(strncmp(f->kept[2]->peer, "127.0.0.1:", 10), 0);
    assert_true(slice_equal(f->kept[2]->encoded, SLICE_LITERAL("\x0A\3abc")));
    peer_close(&peer);
    assert_true(fixture_await(f, &f->cancels, 3));
}

/* Whoever watches may do so for hours. */
static void a_streams_deadline_is_its_callers_alone(void **state)
{
    struct fixture *f = *state;
    struct peer peer;
    static const char *const hour[2] = { "grpc-timeout", "1H" };
    const struct slice empty = SLICE_LITERAL("\0\0\0\0\0");

    f->keep = true;
    fixture_start(f);
    peer_connect(f, &peer);
    peer_call(&peer, PATH_ENTRIES, "application/grpc", empty, NULL);
    peer_call(&peer, PATH_ENTRIES, "application/grpc", empty, hour);
    assert_true(fixture_await(f, &f->requests, 2));
    assert_true(f->kept[0]->deadline_ms == UINT64_MAX);
    assert_true(f->kept[1]->deadline_ms > loop_now_ms(f->loop) + 3000000);
    peer_close(&peer);
    assert_true(fixture_await(f, &f->cancels, 2));
}

static void health_is_told_in_grpc(void **state)
{
    struct fixture *f = *state;
    struct peer peer;

    fixture_start(f);
    peer_connect(f, &peer);
    struct answer *up = peer_call(&peer, "/grpc.health.v1.Health/Check", "application/grpc",
                                  SLICE_LITERAL("\0\0\0\0\0"), NULL);
    assert_true(peer_await(f, &peer, up));
    assert_true(body_is(up, SLICE_LITERAL("\0\0\0\0\2\x08\1")));
    peer_close(&peer);
}

static void a_reset_cancels_only_its_stream(void **state)
{
    struct fixture *f = *state;
    struct peer peer;

    f->keep = true;
    fixture_start(f);
    peer_connect(f, &peer);
    struct answer *reset = peer_call(&peer, PATH_BALANCES, "application/grpc", BALANCES_ABC, NULL);
    struct answer *stays = peer_call(&peer, PATH_BALANCES, "application/grpc", BALANCES_ABC, NULL);
    assert_true(fixture_await(f, &f->requests, 2));
    nghttp2_submit_rst_stream(peer.session, 0, reset->stream_id, NGHTTP2_CANCEL);
    peer_flush(&peer);
    assert_true(fixture_await(f, &f->cancels, 1));
    assert_true(f->kept[0]->cancelled && !f->kept[1]->cancelled);
    while (f->kept_count > 0)
        fixture_answer(f->kept[--f->kept_count]);
    assert_true(peer_await(f, &peer, stays));
    assert_true(answer_has(stays, "grpc-status: 0\n"));
    peer_close(&peer);
}

/* CVE-2023-44487: requests that are reset at once cost the client its connection. */
static void rapid_resets_end_the_connection(void **state)
{
    struct fixture *f = *state;
    struct peer peer;
    unsigned sent = 0;

    f->config.limits.stream_resets_per_s = 1;
    fixture_start(f);
    peer_connect(f, &peer);
    struct awaited awaited = { &peer, NULL };
    for (; sent < 60 && !peer.client.closed && !peer.went_away; sent++) {
        struct answer *answer =
            peer_call(&peer, PATH_BALANCES, "application/grpc", BALANCES_ABC, NULL);
        nghttp2_submit_rst_stream(peer.session, 0, answer->stream_id, NGHTTP2_CANCEL);
        peer_flush(&peer);
        fixture_settle(f);
        (void)has_come(&awaited);
    }
    assert_true(peer_await(f, &peer, NULL));
    assert_true(peer.client.closed && peer.went_away);
    assert_true(sent < 60);
    assert_int_equal(rpc_server_stats(f->server)->requests_active, 0);
    peer_close(&peer);
}

static void a_ping_flood_ends_the_connection(void **state)
{
    struct fixture *f = *state;
    static const uint8_t ping[17] = { 0, 0, 8, 6 };
    struct buf flood = { 0 };
    struct peer peer;

    fixture_start(f);
    peer_connect(f, &peer);
    fixture_settle(f);
    for (int i = 0; i < 3000; i++)
        buf_append(&flood, ping, sizeof ping);
    client_send(&peer.client, flood.data, flood.size);
    assert_true(client_await_close(f, &peer.client));
    peer_close(&peer);
    buf_deinit(&flood);
}

/* The last GOAWAY among the frames that came: its error code; UINT32_MAX without one. */
static uint32_t goaway_code(const struct client *client)
{
    uint32_t code = UINT32_MAX;

    for (size_t at = 0; at + 9 <= client->in.size;) {
        const uint8_t *p = client->in.data + at;
        size_t size = (size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2];
        if (p[3] == NGHTTP2_GOAWAY && at + 17 <= client->in.size)
            code = (uint32_t)p[13] << 24 | (uint32_t)p[14] << 16 | (uint32_t)p[15] << 8 | p[16];
        at += 9 + size;
    }
    return code;
}

/* Sends the preface, then `frame` so many times, and returns the code of the GOAWAY that came. */
static uint32_t flood(struct fixture *f, const char *frame, size_t size, unsigned times)
{
    struct buf bytes = { 0 };

    struct client client = client_connect(f);
    client_send_text(&client, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    buf_append(&bytes, "\0\0\0\4\0\0\0\0\0", 9);
    for (unsigned i = 0; i < times; i++)
        buf_append(&bytes, frame, size);
    client_send(&client, bytes.data, bytes.size);
    assert_true(client_await_close(f, &client));
    uint32_t code = goaway_code(&client);
    client_close(&client);
    buf_deinit(&bytes);
    return code;
}

static void floods_of_control_frames_are_told_to_calm_down(void **state)
{
    static const char settings[] = "\0\0\0\4\0\0\0\0\0";
    static const char ping[] = "\0\0\x08\6\0\0\0\0\0"
                               "12345678";
    static const char priority[] = "\0\0\5\2\0\0\0\0\1\0\0\0\0\1";
    struct fixture *f = *state;

    f->config.limits.control_frames_per_s = 50;
    fixture_start(f);
    assert_int_equal(flood(f, settings, sizeof settings - 1, 1000), NGHTTP2_ENHANCE_YOUR_CALM);
    assert_int_equal(flood(f, ping, sizeof ping - 1, 1000), NGHTTP2_ENHANCE_YOUR_CALM);
    assert_int_equal(flood(f, priority, sizeof priority - 1, 1000), NGHTTP2_ENHANCE_YOUR_CALM);
    assert_int_equal(rpc_server_stats(f->server)->floods, 3);
}

/* CVE-2024-28182: a header block that never ends. */
static void a_header_block_without_end_is_cut(void **state)
{
    static const char begin[] = "\0\0\1\1\0\0\0\0\1\x83"; /* HEADERS without END_HEADERS. */
    static const char more[] = "\0\0\1\x09\0\0\0\0\1\x86";
    struct fixture *f = *state;
    struct buf bytes = { 0 };

    fixture_start(f);
    buf_append(&bytes, begin, sizeof begin - 1);
    for (int i = 0; i < 1000; i++)
        buf_append(&bytes, more, sizeof more - 1);
    assert_int_equal(flood(f, (const char *)bytes.data, bytes.size, 1), NGHTTP2_ENHANCE_YOUR_CALM);
    assert_int_equal(rpc_server_stats(f->server)->requests, 0);
    buf_deinit(&bytes);
}

/* A client that gives its answer no window: the stream is reset, the connection lives on. */
static void an_answer_without_a_window_is_given_up(void **state)
{
    struct fixture *f = *state;
    struct peer peer;

    f->config.limits.write_timeout_ms = 200;
    fixture_start(f);
    peer_connect(f, &peer);
    nghttp2_settings_entry none = { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0 };
    nghttp2_submit_settings(peer.session, 0, &none, 1);
    peer_flush(&peer);
    fixture_settle(f);
    struct answer *answer = peer_call(&peer, PATH_BALANCES, "application/grpc", BALANCES_ABC, NULL);
    assert_true(peer_await(f, &peer, answer));
    assert_int_equal(answer->error_code, NGHTTP2_CANCEL);
    assert_int_equal(rpc_server_stats(f->server)->waiting_bytes, 0);
    assert_int_equal(rpc_server_stats(f->server)->timeouts, 1);
    assert_false(peer.client.closed);
    peer_close(&peer);
}

static void long_bodies_and_headers_are_refused(void **state)
{
    struct fixture *f = *state;
    struct peer peer;
    uint8_t body[3000] = { 0 };
    char value[3000];
    const char *extra[2] = { "x", value };

    f->config.limits.body_bytes_max = 1000;
    f->config.limits.header_bytes_max = 2000;
    fixture_start(f);
    peer_connect(f, &peer);
    struct answer *json =
        peer_call(&peer, PATH_GRANT, "application/json", (struct slice){ body, 1500 }, NULL);
    struct answer *grpc =
        peer_call(&peer, PATH_GRANT, "application/grpc", (struct slice){ body, 1500 }, NULL);
    struct answer *flood =
        peer_call(&peer, PATH_GRANT, "application/json", (struct slice){ body, 3000 }, NULL);
    assert_true(peer_await(f, &peer, json));
    assert_true(answer_has(json, ":status: 413\n"));
    assert_true(peer_await(f, &peer, grpc));
    assert_true(answer_has(grpc, "grpc-status: 8\n"));
    assert_true(peer_await(f, &peer, flood));
    memset(value, 'a', sizeof value);
    value[sizeof value - 1] = 0;
    struct answer *head =
        peer_call(&peer, PATH_GRANT, "application/json", (struct slice){ 0 }, extra);
    assert_true(peer_await(f, &peer, head));
    assert_int_equal(head->error_code, NGHTTP2_ENHANCE_YOUR_CALM);
    assert_int_equal(f->requests, 0);
    peer_close(&peer);
}

static void streams_send_many_messages_and_wait_for_room(void **state)
{
    struct fixture *f = *state;
    struct peer peer;
    Holdfast__V1__ListEntriesResponse page = HOLDFAST__V1__LIST_ENTRIES_RESPONSE__INIT;
    char cursor[4000];

    f->keep = true;
    f->config.limits.stream_bytes_max = 20000;
    fixture_start(f);
    peer_connect(f, &peer);
    memset(cursor, 'c', sizeof cursor);
    cursor[sizeof cursor - 1] = 0;
    page.next_cursor = cursor;
    struct answer *grpc =
        peer_call(&peer, PATH_ENTRIES, "application/grpc", SLICE_LITERAL("\0\0\0\0\0"), NULL);
    struct answer *connect = peer_call(&peer, PATH_ENTRIES, "application/connect+json",
                                       SLICE_LITERAL("\0\0\0\0\2{}"), NULL);
    assert_true(fixture_await(f, &f->requests, 2));
    unsigned sent = 0;
    while (rpc_stream_send(f->kept[0], &page.base))
        sent++;
    assert_true(sent >= 4 && sent <= 6);
    assert_true(fixture_await(f, &f->writable, 1));
    rpc_stream_end(f->kept[0], NULL);
    page.next_cursor = cursor + sizeof cursor - 2;
    assert_true(rpc_stream_send(f->kept[1], &page.base));
    assert_true(rpc_stream_send(f->kept[1], &page.base));
    rpc_stream_end(f->kept[1], NULL);
    f->kept_count = 0;
    assert_true(peer_await(f, &peer, grpc));
    assert_true(answer_has(grpc, "grpc-status: 0\n"));
    assert_int_equal(grpc->body.size, (sent + 1) * (5 + 3 + sizeof cursor - 1));
    assert_true(peer_await(f, &peer, connect));
    assert_true(body_is(connect, SLICE_LITERAL("\0\0\0\0\x12{\"nextCursor\":\"c\"}"
                                               "\0\0\0\0\x12{\"nextCursor\":\"c\"}"
                                               "\2\0\0\0\2{}")));
    peer_close(&peer);
}

static void a_stream_that_fails_says_so_at_its_end(void **state)
{
    struct fixture *f = *state;
    struct peer peer;
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;
    Holdfast__V1__ListEntriesResponse page = HOLDFAST__V1__LIST_ENTRIES_RESPONSE__INIT;

    f->keep = true;
    fixture_start(f);
    peer_connect(f, &peer);
    struct answer *grpc =
        peer_call(&peer, PATH_ENTRIES, "application/grpc", SLICE_LITERAL("\0\0\0\0\0"), NULL);
    struct answer *connect = peer_call(&peer, PATH_ENTRIES, "application/connect+proto",
                                       SLICE_LITERAL("\0\0\0\0\0"), NULL);
    assert_true(fixture_await(f, &f->requests, 2));
    detail.code = HOLDFAST__V1__ERROR_CODE__ERROR_CODE_VERSION_LOST;
    for (size_t i = 0; i < 2; i++) {
        assert_true(rpc_stream_send(f->kept[i], &page.base));
        rpc_stream_end(f->kept[i], &detail);
    }
    f->kept_count = 0;
    assert_true(peer_await(f, &peer, grpc));
    assert_true(answer_has(grpc, "grpc-status: 15\n"));
    assert_true(peer_await(f, &peer, connect));
    assert_true(connect->body.size > 15);
    assert_int_equal(connect->body.data[5], 2);
    assert_non_null(memmem(connect->body.data, connect->body.size, "\"data_loss\"", 11));
    peer_close(&peer);
}

static void draining_lets_streams_finish(void **state)
{
    struct fixture *f = *state;
    struct peer peer;

    f->keep = true;
    fixture_start(f);
    peer_connect(f, &peer);
    struct answer *answer = peer_call(&peer, PATH_BALANCES, "application/grpc", BALANCES_ABC, NULL);
    assert_true(fixture_await(f, &f->requests, 1));
    rpc_server_drain(f->server);
    fixture_answer(f->kept[--f->kept_count]);
    assert_true(peer_await(f, &peer, answer));
    assert_true(answer_has(answer, "grpc-status: 0\n"));
    assert_true(peer_await(f, &peer, NULL));
    assert_true(peer.went_away);
    peer_close(&peer);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(grpc_answers_a_message_and_trailers),
        TEST(grpc_errors_are_trailers_only),
        TEST(grpc_is_told_of_types_and_verbs_without_a_body),
        TEST(a_body_that_does_not_come_is_answered),
        TEST(connect_and_grpc_web_work_over_http_2),
        TEST(deadline_key_and_trace_reach_the_handler),
        TEST(a_streams_deadline_is_its_callers_alone),
        TEST(health_is_told_in_grpc),
        TEST(a_reset_cancels_only_its_stream),
        TEST(rapid_resets_end_the_connection),
        TEST(a_ping_flood_ends_the_connection),
        TEST(floods_of_control_frames_are_told_to_calm_down),
        TEST(a_header_block_without_end_is_cut),
        TEST(an_answer_without_a_window_is_given_up),
        TEST(long_bodies_and_headers_are_refused),
        TEST(streams_send_many_messages_and_wait_for_room),
        TEST(a_stream_that_fails_says_so_at_its_end),
        TEST(draining_lets_streams_finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
