#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/ledger.pb-c.h"
#include "runtime/base/check.h"
#include "runtime/codec/gzip.h"
#include "runtime/codec/proto_codec.h"
#include "runtime/rpc/h2_peer.h"
#include "runtime/rpc/http_fixture.h"

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
        const char *path;
        const char *type;
        const char *line;
        const char *body;
    } cases[] = {
        { PATH_GRANT, "application/grpc", "grpc-status: 4\n", NULL },
        { PATH_GRANT, "application/grpc-web", ":status: 200\n", "grpc-status: 4\r\n" },
        { PATH_ENTRIES, "application/connect+json", ":status: 200\n",
          "\"code\":\"deadline_exceeded\"" },
        { PATH_GRANT, "application/json", ":status: 408\n", "\"code\":\"deadline_exceeded\"" },
    };
    struct fixture *f = *state;
    struct peer peer;

    f->config.limits.body_timeout_ms = 200;
    fixture_start(f);
    peer_connect(f, &peer);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const nghttp2_nv fields[] = { nv(":method", "POST"), nv(":scheme", "http"),
                                      nv(":authority", "x"), nv(":path", cases[i].path),
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
    assert_true(body_is(json, SLICE_LITERAL("{\"version\":2}")));
    assert_true(body_is(proto, SLICE_LITERAL("\x10\2")));
    assert_true(body_is(web, SLICE_LITERAL("\0\0\0\0\2\x10\3\x80\0\0\0\x10grpc-status: 0\r\n")));
    assert_true(answer_has(web, "content-type: application/grpc-web+proto\n"));
    peer_close(&peer);
}

/* Both ways, by each message's flag; the trailers say that all is well. */
static void grpc_messages_may_be_packed(void **state)
{
    struct fixture *f = *state;
    struct gzip gzip = { 0 };
    struct buf plain = { 0 }, packed = { 0 }, body = { 0 };
    struct peer peer;
    const char *why;

    f->keep = true;
    fixture_start(f);
    peer_connect(f, &peer);
    buf_append(&plain, "\x0A\x88\x27", 3);
    for (int i = 0; i < 5000; i++)
        buf_put_u8(&plain, 'a');
    assert_true(gzip_encode(&gzip, buf_slice(&plain), &packed));
    buf_put_u8(&body, 1);
    buf_put_u32_be(&body, (uint32_t)packed.size);
    buf_append(&body, packed.data, packed.size);
    struct answer *answer = peer_call(&peer, PATH_GRANT, "application/grpc", buf_slice(&body),
                                      (const char *const[]){ "grpc-encoding", "gzip" });
    assert_true(fixture_await(f, &f->requests, 1));
    struct rpc_request *request = f->kept[--f->kept_count];
    assert_int_equal(strlen(((const Holdfast__V1__GrantRequest *)request->message)->player_id),
                     5000);
    assert_true(slice_equal(request->encoded, buf_slice(&plain)));
    rpc_reply_encoded(request, buf_slice(&plain));
    assert_true(peer_await(f, &peer, answer));
    assert_true(answer_has(answer, "grpc-encoding: gzip\n"));
    assert_true(answer_has(answer, "grpc-status: 0\n"));
    assert_true(answer->body.size < 200 && answer->body.data[0] == 1);
    buf_clear(&packed);
    struct slice bytes = { answer->body.data + 5, answer->body.size - 5 };
    assert_int_equal(gzip_decode(&gzip, bytes, 10000, &packed, &why), ERR_OK);
    assert_true(slice_equal(buf_slice(&packed), buf_slice(&plain)));
    peer_close(&peer);
    gzip_deinit(&gzip);
    buf_deinit(&plain);
    buf_deinit(&packed);
    buf_deinit(&body);
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

/* A watcher may watch for hours. */
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
    for (; sent < 60 && !peer.client.closed && !peer.went_away; sent++) {
        struct answer *answer =
            peer_call(&peer, PATH_BALANCES, "application/grpc", BALANCES_ABC, NULL);
        nghttp2_submit_rst_stream(peer.session, 0, answer->stream_id, NGHTTP2_CANCEL);
        peer_flush(&peer);
        fixture_settle(f);
        peer_take(&peer);
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

/* 8 KiB, of which each header counts for 32 more (RFC 9113 section 6.5.2). */
static void an_error_fits_the_headers_that_grpc_clients_take(void **state)
{
    static char text[100001];
    struct fixture *f = *state;
    struct peer peer;
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;
    char *const texts[] = { text, text + 1 }; /* Letters of two bytes, and not UTF-8. */

    for (size_t i = 0; i < sizeof text - 1; i += 2)
        memcpy(text + i, "\xc3\xa4", 2);
    f->keep = true;
    fixture_start(f);
    peer_connect(f, &peer);
    for (unsigned i = 0; i < ARRAY_SIZE(texts); i++) {
        detail.code = HOLDFAST__V1__ERROR_CODE__ERROR_CODE_PERMISSION_DENIED;
        detail.message = detail.field = detail.limit = detail.value = texts[i];
        detail.entity = detail.op_id = detail.trace_id = texts[i];
        struct answer *answer =
            peer_call(&peer, PATH_GRANT, "application/grpc", SLICE_LITERAL("\0\0\0\0\0"), NULL);
        assert_true(fixture_await(f, &f->requests, i + 1));
        rpc_fail(f->kept[--f->kept_count], &detail);
        assert_true(peer_await(f, &peer, answer));
        assert_true(answer_has(answer, "grpc-status: 7\n"));
        assert_in_range(answer->headers.size, 4096, 8192 - 12 * 32);
    }
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
        TEST(grpc_messages_may_be_packed),
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
        TEST(an_error_fits_the_headers_that_grpc_clients_take),
        TEST(a_stream_that_fails_says_so_at_its_end),
        TEST(draining_lets_streams_finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
