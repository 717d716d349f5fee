#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>
#include <uv.h>

#include "runtime/base/check.h"
#include "runtime/http/http_state.h"
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

static void post(struct client *client, const char *path, const char *json)
{
    struct buf out = { 0 };

    put_post(&out, path, json);
    client_send(client, out.data, out.size);
    buf_deinit(&out);
}

static void a_call_is_answered_and_the_connection_lives_on(void **state)
{
    struct fixture *f = *state;
    fixture_start(f);
    struct client client = client_connect(f);

    for (unsigned i = 1; i <= 3; i++) {
        post(&client, PATH_BALANCES, "{\"playerId\":\"abc\"}");
        assert_true(client_await(f, &client, "{\"version\":3}", i));
    }
    assert_non_null(strstr(client_text(&client), "content-type: application/json\r\n"));
    assert_int_equal(rpc_server_stats(f->server)->connections_accepted, 1);
    client_close(&client);
}

/* RFC 9112 section 9.3.2: answers leave in the order of the requests. */
static void pipelined_answers_keep_their_order(void **state)
{
    struct fixture *f = *state;
    struct buf out = { 0 };

    f->keep = true;
    fixture_start(f);
    struct client client = client_connect(f);
    for (int i = 1; i <= (int)HTTP_PIPELINE_FIRST; i++) {
        char json[64];
        snprintf(json, sizeof json, "{\"playerId\":\"%.*s\"}", i, "aaaaa");
        put_post(&out, PATH_BALANCES, json);
    }
    client_send(&client, out.data, out.size);
    assert_true(fixture_await(f, &f->requests, HTTP_PIPELINE_FIRST));
    while (f->kept_count > 0) /* The last one first. */
        fixture_answer(f->kept[--f->kept_count]);
    assert_true(client_await(f, &client, "\"version\"", HTTP_PIPELINE_FIRST));

    const char *at = client_text(&client);
    for (int i = 1; i <= (int)HTTP_PIPELINE_FIRST; i++) {
        char expected[32];
        snprintf(expected, sizeof expected, "{\"version\":%d}", i);
        at = strstr(at, expected);
        assert_non_null(at);
    }
    client_close(&client);
    buf_deinit(&out);
}

static bool only_reads_may_enter(void *user, struct rpc_request *request,
                                 Holdfast__V1__ErrorDetail *ret_detail)
{
    (void)user;
    (void)ret_detail;
    return !request->method->writes;
}

/* One is refused by its head; its body is then too long, or does not come. */
static void answers_of_before_a_refused_body_are_not_lost(void **state)
{
    static char body[100000];
    struct fixture *f = *state;

    f->keep = true;
    f->config.handlers.may_enter = only_reads_may_enter;
    f->config.limits.body_timeout_ms = 1;
    fixture_start(f);
    for (unsigned i = 0; i < 2; i++) {
        struct client client = client_connect(f);
        post(&client, PATH_BALANCES, "{\"playerId\":\"abc\"}");
        client_send_text(&client,
                         "POST " PATH_GRANT " HTTP/1.1\r\nHost: x\r\nContent-Type: "
                         "application/json\r\nTransfer-Encoding: chunked\r\n\r\n80000\r\n");
        client_send(&client, body, i == 0 ? sizeof body : 1);
        const struct http_stats *stats = rpc_server_stats(f->server);
        for (unsigned k = 0; k < 5000 && stats->bad_messages + stats->timeouts <= i; k++)
            fixture_settle(f);
        assert_int_equal(stats->bad_messages + stats->timeouts, i + 1);
        assert_int_equal(f->requests, i + 1);
        fixture_answer(f->kept[--f->kept_count]);
        assert_true(client_await_close(f, &client));
        assert_non_null(strstr(client_text(&client), "{\"version\":3}"));
        assert_non_null(strstr(client_text(&client), "resource_exhausted"));
        client_close(&client);
    }
}

static void a_trace_is_taken_from_one_valid_header_alone(void **state)
{
#define PARENT "traceparent: 00-0123456789abcdef0123456789abcdef-00000000000000aa-01\r\n"
    static const char *const headers[] = {
        PARENT "tracestate: a=b\r\n",
        PARENT PARENT,
        "traceparent: 00-00000000000000000000000000000000-00000000000000aa-01\r\n",
    };
    struct fixture *f = *state;
    struct buf out = { 0 };

    f->keep = true;
    fixture_start(f);
    struct client client = client_connect(f);
    for (size_t i = 0; i < ARRAY_SIZE(headers); i++)
        buf_printf(&out,
                   "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%s"
                   "Content-Length: 2\r\n\r\n{}",
                   PATH_BALANCES, headers[i]);
    client_send(&client, out.data, out.size);
    assert_true(fixture_await(f, &f->requests, 3));
    assert_int_equal(f->kept[0]->trace.trace_id[15], 0xef);
    assert_int_equal(f->kept[0]->trace.span, 0xaa);
    assert_false(trace_is_set(f->kept[1]->trace.trace_id));
    assert_false(trace_is_set(f->kept[2]->trace.trace_id));
    while (f->kept_count > 0)
        fixture_answer(f->kept[--f->kept_count]);
    client_close(&client);
    buf_deinit(&out);
#undef PARENT
}

static void reading_stops_when_enough_requests_wait(void **state)
{
    struct fixture *f = *state;
    struct buf out = { 0 };

    f->keep = true;
    f->config.limits.pipeline_max = 4;
    fixture_start(f);
    struct client client = client_connect(f);
    for (int i = 0; i < 20; i++)
        put_post(&out, PATH_BALANCES, "{\"playerId\":\"a\"}");
    client_send(&client, out.data, out.size);
    assert_true(fixture_await(f, &f->requests, 4));
    fixture_settle(f);
    assert_int_equal(f->requests, 4);
    for (unsigned i = 0; i < 5; i++) {
        while (f->kept_count > 0)
            fixture_answer(f->kept[--f->kept_count]);
        assert_true(client_await(f, &client, "\"version\"", 4 * (i + 1)));
    }
    assert_int_equal(f->requests, 20);
    client_close(&client);
    buf_deinit(&out);
}

static void bytes_may_come_one_by_one_and_in_chunks(void **state)
{
    struct fixture *f = *state;
    static const char request[] = "\r\nPOST " PATH_BALANCES "?a=b HTTP/1.1\r\nHost:x\r\n"
                                  "content-type:application/json; charset=utf-8\r\n"
                                  "Transfer-Encoding: Chunked\r\n\r\n"
                                  "5;ext=1\r\n{\"pla\r\n10\r\nyerId\":\"abcde\"} \r\n0\r\n"
                                  "trailer: x\r\n\r\n";
    fixture_start(f);
    struct client client = client_connect(f);

    for (size_t i = 0; i < sizeof request - 1; i++) {
        client_send(&client, request + i, 1);
        if (i % 16 == 0)
            fixture_settle(f);
    }
    assert_true(client_await(f, &client, "{\"version\":5}", 1));
    client_close(&client);
}

/* What servers and proxies are known to read differently must end the connection, unserved. */
static void ambiguous_requests_are_refused(void **state)
{
#define BODY  "\r\n\r\n0\r\n\r\nPOST " PATH_GRANT " HTTP/1.1\r\nHost: x\r\n\r\n"
#define START "POST " PATH_GRANT " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    static const char *const requests[] = {
        START "Content-Length: 5\r\nTransfer-Encoding: chunked" BODY,
        START "Transfer-Encoding: chunked\r\nContent-Length: 5" BODY,
        START "Content-Length: 5\r\nContent-Length: 5" BODY,
        START "Content-Length: 5\r\nContent-Length: 6" BODY,
        START "Content-Length: 5, 5" BODY,
        START "Content-Length: +5" BODY,
        START "Content-Length: -5" BODY,
        START "Content-Length: 0x5" BODY,
        START "Content-Length: 5 5" BODY,
        START "Content-Length:" BODY,
        START "Content-Length: 99999999999999999999" BODY,
        START "Content-Length : 5" BODY,
        START "Content-Length\t: 5" BODY,
        START "Transfer-Encoding: chunked, identity" BODY,
        START "Transfer-Encoding: identity" BODY,
        START "Transfer-Encoding: xchunked" BODY,
        START "Transfer-Encoding: gzip, chunked" BODY,
        START "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked" BODY,
        START "Transfer-Encoding:\r\n chunked" BODY,
        START "Transfer-Encoding: chunked\r\n folded" BODY,
        START "X: a\r\n\tfolded" BODY,
        START "X: a\rContent-Length: 5" BODY,
        START "X: a\nContent-Length: 5" BODY,
        START "X" BODY,
        START ": x" BODY,
        START "X\x01: a" BODY,
        START "Host: y" BODY,
        "POST " PATH_GRANT " HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
        "POST " PATH_GRANT " HTTP/1.0\r\nTransfer-Encoding: chunked" BODY,
        "POST " PATH_GRANT " HTTP/3.1\r\nHost: x\r\n\r\n",
        "POST " PATH_GRANT "\r\n\r\n",
        "POST holdfast HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST " PATH_GRANT " HTTP/1.1 \r\nHost: x\r\n\r\n",
        "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n",
        "get / HTTP/1.1\r\nHost: x\r\n\r\n",
        " GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "\x16\x03\x01\x02\x01\xfc\x03\x03\n\n",
    };
    struct fixture *f = *state;
    fixture_start(f);

    for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
        struct client client = client_connect(f);
        client_send_text(&client, requests[i]);
        if (!client_await_close(f, &client) ||
            strncmp(client_text(&client), "HTTP/1.1 400 ", 13) != 0)
            fail_msg("%s\n-> %s", requests[i], client_text(&client));
        assert_null(strstr(client_text(&client) + 1, "HTTP/1.1")); /* One answer only. */
        client_close(&client);
    }
    assert_int_equal(f->requests, 0);
}

static void malformed_chunks_are_refused(void **state)
{
    static const char *const chunks[] = { "x\r\n",
                                          "5\r\nabcdefg\r\n",
                                          "5 5\r\nabcde\r\n",
                                          "-1\r\n",
                                          "fffffffffffffffff\r\n",
                                          "0x1\r\na\r\n",
                                          "1\r\nabc0\r\n\r\n",
                                          "1\r\na\n0\r\n\r\n",
                                          "2;a\rb\r\n",
                                          "1\r\na\r\n0\r\nx: y\n\r\n",
                                          "0\r\n x: y\r\n\r\n",
                                          "1\n" };
    struct fixture *f = *state;
    fixture_start(f);

    for (size_t i = 0; i < ARRAY_SIZE(chunks); i++) {
        struct client client = client_connect(f);
        client_send_text(&client, START "Transfer-Encoding: chunked\r\n\r\n");
        client_send_text(&client, chunks[i]);
        assert_true(client_await_close(f, &client));
        if (strncmp(client_text(&client), "HTTP/1.1 4", 10) != 0)
            fail_msg("%s -> %s", chunks[i], client_text(&client));
        client_close(&client);
    }
    assert_int_equal(f->requests, 0);
}

static void long_heads_and_bodies_are_refused(void **state)
{
    struct fixture *f = *state;
    char line[600];

    f->config.limits.header_bytes_max = 2000;
    f->config.limits.headers_max = 20;
    f->config.limits.body_bytes_max = 100;
    fixture_start(f);
    memset(line, 'a', sizeof line);

    struct client head = client_connect(f);
    client_send_text(&head, START "X: ");
    for (int i = 0; i < 4; i++)
        client_send(&head, line, sizeof line);
    assert_true(client_await_close(f, &head));
    assert_non_null(strstr(client_text(&head), "HTTP/1.1 431 "));
    client_close(&head);

    struct client many = client_connect(f);
    client_send_text(&many, START);
    for (int i = 0; i < 30; i++)
        client_send_text(&many, "a: b\r\n");
    client_send_text(&many, "\r\n");
    assert_true(client_await_close(f, &many));
    assert_non_null(strstr(client_text(&many), "HTTP/1.1 431 "));
    client_close(&many);

    struct client length = client_connect(f);
    client_send_text(&length, START "Content-Length: 101\r\n\r\n");
    assert_true(client_await_close(f, &length));
    assert_non_null(strstr(client_text(&length), "HTTP/1.1 413 "));
    assert_non_null(strstr(client_text(&length), "\"limit\":\"100\""));
    client_close(&length);

    struct client chunks = client_connect(f);
    client_send_text(&chunks, START "Transfer-Encoding: chunked\r\n\r\n200\r\n");
    client_send(&chunks, line, 300);
    assert_true(client_await_close(f, &chunks));
    assert_non_null(strstr(client_text(&chunks), "HTTP/1.1 413 "));
    client_close(&chunks);
    assert_int_equal(f->requests, 0);
}

static void slow_and_idle_clients_are_closed(void **state)
{
    struct fixture *f = *state;

    f->config.limits.header_timeout_ms = 40;
    f->config.limits.body_timeout_ms = 40;
    f->config.limits.idle_timeout_ms = 1500; /* Enough to ask, also on a starved machine. */
    fixture_start(f);
    struct client head = client_connect(f);
    struct client body = client_connect(f);
    struct client preface = client_connect(f);
    struct client idle = client_connect(f);
    struct client silent = client_connect(f);

    client_send_text(&head, "POST / HTTP/1.1\r\nHos");
    client_send_text(&body, START "Content-Length: 5\r\n\r\nab");
    client_send_text(&preface, "PRI * HTTP/2.0");
    client_send_text(&idle, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(client_await_close(f, &head));
    assert_non_null(strstr(client_text(&head), "HTTP/1.1 408 "));
    assert_true(client_await_close(f, &body));
    assert_non_null(strstr(client_text(&body), "HTTP/1.1 408 "));
    assert_true(client_await_close(f, &preface));
    assert_true(client_await_close(f, &idle));
    assert_non_null(strstr(client_text(&idle), "ok\n"));
    assert_true(client_await_close(f, &silent));
    client_close(&head);
    client_close(&body);
    client_close(&preface);
    client_close(&idle);
    client_close(&silent);
}

static void a_gone_client_cancels_and_the_late_answer_is_harmless(void **state)
{
    struct fixture *f = *state;

    f->keep = true;
    fixture_start(f);
    struct client client = client_connect(f);
    post(&client, PATH_BALANCES, "{\"playerId\":\"abc\"}");
    post(&client, PATH_BALANCES, "{\"playerId\":\"abcd\"}");
    assert_true(fixture_await(f, &f->requests, 2));
    client_close(&client);
    assert_true(fixture_await(f, &f->cancels, 2));
    assert_true(f->kept[0]->cancelled && f->kept[1]->cancelled);
    assert_int_equal(rpc_server_stats(f->server)->requests_active, 2);
    while (f->kept_count > 0)
        fixture_answer(f->kept[--f->kept_count]);
    assert_int_equal(rpc_server_stats(f->server)->requests_active, 0);
    fixture_settle(f);
}

static void too_many_requests_and_connections_are_turned_away(void **state)
{
    struct fixture *f = *state;

    f->keep = true;
    f->config.limits.requests_max = 1;
    f->config.limits.connections_max = 2;
    fixture_start(f);
    struct client first = client_connect(f);
    struct client second = client_connect(f);
    post(&first, PATH_GRANT, "{}");
    assert_true(fixture_await(f, &f->requests, 1));
    post(&second, PATH_GRANT, "{}");
    assert_true(client_await(f, &second, "HTTP/1.1 429 ", 1));
    assert_non_null(strstr(client_text(&second), "retry-after: 1\r\n"));
    client_send_text(&second, "POST"); /* A request has begun: it is not idle. */
    uint64_t received = rpc_server_stats(f->server)->bytes_received;
    while (rpc_server_stats(f->server)->bytes_received == received)
        (void)uv_run(loop_uv(f->loop), UV_RUN_ONCE);
    struct client third = client_connect(f);
    assert_true(client_await_close(f, &third));
    client_close(&first);
    client_close(&second);
    client_close(&third);
}

/* The second one is idle, and makes room; the first one has a request under way, and stays. */
static void an_idle_connection_makes_room_for_a_new_one(void **state)
{
    struct fixture *f = *state;
    struct client newest = { .closed = true };

    f->keep = true;
    f->config.limits.connections_max = 2;
    fixture_start(f);
    struct client busy = client_connect(f);
    struct client idle = client_connect(f);
    post(&busy, PATH_GRANT, "{}");
    assert_true(fixture_await(f, &f->requests, 1));
    uint64_t end_ms = loop_now_ms(f->loop) + FIXTURE_WAIT_MS;
    while (newest.closed &&
           loop_now_ms(f->loop) < end_ms) { /* Refused while none is idle for long. */
        newest = client_connect(f);
        client_send_text(&newest, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
        if (!client_await(f, &newest, "ok\n", 1))
            client_close(&newest);
    }
    assert_false(newest.closed);
    assert_true(client_await_close(f, &idle));
    assert_int_equal(rpc_server_stats(f->server)->evicted, 1);
    assert_int_equal(rpc_server_stats(f->server)->requests_active, 1);
    client_close(&newest);
    client_close(&idle);
    client_close(&busy);
}

/* Two readers of nothing fill the memory for answers: the one that holds more than its part goes.
 */
static void slow_readers_are_closed_when_answers_fill_their_memory(void **state)
{
    struct fixture *f = *state;
    struct buf out = { 0 };

    f->config.limits.waiting_bytes_max = 200000;
    fixture_start(f);
    struct client client = client_connect(f);
    for (int i = 0; i < 100; i++)
        put_post(&out, PATH_BALANCES, "{\"playerId\":\"a\"}");
    const struct http_stats *stats = rpc_server_stats(f->server);
    for (int i = 0; i < 5000 && stats->slow_readers == 0; i++) {
        (void)!send(client.fd, out.data, out.size, MSG_DONTWAIT | MSG_NOSIGNAL);
        fixture_settle(f);
        assert_true(stats->waiting_bytes < 300000);
    }
    assert_int_equal(stats->slow_readers, 1);
    assert_int_equal(stats->waiting_bytes, 0);
    client_close(&client);
    buf_deinit(&out);
}

static void connection_close_and_http_1_0_end_the_connection(void **state)
{
    struct fixture *f = *state;
    fixture_start(f);
    struct client closes = client_connect(f);
    struct client old = client_connect(f);
    struct client kept = client_connect(f);

    client_send_text(&closes, "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
                              "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(client_await_close(f, &closes));
    assert_non_null(strstr(client_text(&closes), "connection: close\r\n"));
    assert_null(strstr(client_text(&closes) + 1, "HTTP/1.1 "));
    client_send_text(&old, "GET /healthz HTTP/1.0\r\n\r\n");
    assert_true(client_await_close(f, &old));
    assert_non_null(strstr(client_text(&old), "ok\n"));
    client_send_text(&kept, "GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
                            "HEAD /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert_true(client_await_close(f, &kept));
    assert_non_null(strstr(client_text(&kept), "connection: keep-alive\r\n"));
    assert_non_null(strstr(client_text(&kept), "content-length: 3\r\n\r\nok\nHTTP/1.1 200 OK"));
    client_close(&closes);
    client_close(&old);
    client_close(&kept);
}

static void a_draining_server_finishes_what_it_has(void **state)
{
    struct fixture *f = *state;

    f->keep = true;
    fixture_start(f);
    struct client busy = client_connect(f);
    struct client idle = client_connect(f);
    client_send_text(&idle, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(client_await(f, &idle, "ok\n", 1));
    post(&busy, PATH_GRANT, "{}");
    assert_true(fixture_await(f, &f->requests, 1));
    rpc_server_drain(f->server);
    assert_true(client_await_close(f, &idle));
    assert_false(busy.closed);
    fixture_answer(f->kept[--f->kept_count]);
    assert_true(client_await_close(f, &busy));
    assert_non_null(strstr(client_text(&busy), "HTTP/1.1 200 OK"));
    client_close(&busy);
    client_close(&idle);
}

/* A client that sends and never reads is not served without end, and is closed in the end. */
static void a_client_that_never_reads_is_stopped_and_closed(void **state)
{
    struct fixture *f = *state;
    struct buf out = { 0 };
    size_t stuck = 0;

    f->config.limits.output_bytes_max = 65536;
    f->config.limits.write_timeout_ms = 2000;
    fixture_start(f);
    struct client client = client_connect(f);
    for (int i = 0; i < 100; i++)
        put_post(&out, PATH_BALANCES, "{\"playerId\":\"a\"}");
    for (int i = 0; i < 5000 && stuck < 3; i++) {
        bool sent = send(client.fd, out.data, out.size, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
        stuck = sent ? 0 : stuck + 1;
        fixture_settle(f);
    }
    assert_int_equal(stuck, 3);
    unsigned served = f->requests;
    uint64_t end_ms = loop_now_ms(f->loop) + FIXTURE_WAIT_MS;
    while (rpc_server_stats(f->server)->timeouts == 0 && loop_now_ms(f->loop) < end_ms)
        fixture_settle(f);
    assert_int_equal(rpc_server_stats(f->server)->timeouts, 1);
    assert_int_equal(f->requests, served);
    client_close(&client);
    buf_deinit(&out);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_call_is_answered_and_the_connection_lives_on),
        TEST(pipelined_answers_keep_their_order),
        TEST(answers_of_before_a_refused_body_are_not_lost),
        TEST(a_trace_is_taken_from_one_valid_header_alone),
        TEST(reading_stops_when_enough_requests_wait),
        TEST(bytes_may_come_one_by_one_and_in_chunks),
        TEST(ambiguous_requests_are_refused),
        TEST(malformed_chunks_are_refused),
        TEST(long_heads_and_bodies_are_refused),
        TEST(slow_and_idle_clients_are_closed),
        TEST(a_gone_client_cancels_and_the_late_answer_is_harmless),
        TEST(too_many_requests_and_connections_are_turned_away),
        TEST(an_idle_connection_makes_room_for_a_new_one),
        TEST(slow_readers_are_closed_when_answers_fill_their_memory),
        TEST(connection_close_and_http_1_0_end_the_connection),
        TEST(a_draining_server_finishes_what_it_has),
        TEST(a_client_that_never_reads_is_stopped_and_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
