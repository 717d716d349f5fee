#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "holdfast/v1/ledger.pb-c.h"
#include "runtime/base/check.h"
#include "runtime/rpc/h2_peer.h"
#include "runtime/rpc/http_fixture.h"

#define LARGE_BYTES  (8u << 20) /* More than the sockets of a reader of nothing take. */
#define BALANCES_ABC SLICE_LITERAL("\0\0\0\0\5\x0A\3abc")
#define PREFACE      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define SETTINGS     "\0\0\0\4\0\0\0\0\0"

static int set_up(void **state)
{
    static struct fixture fixture;

    fixture_init(&fixture);
    fixture.keep = true;
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    fixture_stop(*state);
    return 0;
}

static bool never(void *user)
{
    (void)user;
    return false;
}

static void let_run(struct fixture *f, uint32_t ms)
{
    assert_false(loop_run_until(f->loop, never, NULL, ms));
}

static void post_balances(struct client *client, unsigned id_size)
{
    struct buf out = { 0 };
    char json[64];

    snprintf(json, sizeof json, "{\"playerId\":\"%.*s\"}", (int)id_size, "aaaaaaaa");
    put_post(&out, PATH_BALANCES, json);
    client_send(client, out.data, out.size);
    buf_deinit(&out);
}

static unsigned times_of(const char *text, const char *part)
{
    unsigned times = 0;

    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        times++;
    return times;
}

/* Answered in this order: 0 is the oldest. Each is whole, and the last one says that no more is
 * taken. */
static void drain_a_pipeline(struct fixture *f, const unsigned order[3])
{
    const char *close = "connection: close\r\n";
    unsigned before = f->requests;

    struct client client = client_connect(f);
    for (unsigned i = 1; i <= 3; i++)
        post_balances(&client, i);
    assert_true(fixture_await(f, &f->requests, before + 3));
    rpc_server_drain(f->server);
    for (unsigned i = 0; i < 3; i++)
        fixture_answer(f->kept[order[i]]);
    f->kept_count = 0;
    assert_true(client_await_close(f, &client));
    const char *text = client_text(&client);
    for (unsigned i = 1; i <= 3; i++) {
        char expected[32];
        snprintf(expected, sizeof expected, "{\"version\":%u}", i);
        assert_int_equal(times_of(text, expected), 1);
    }
    assert_int_equal(times_of(text, close), 1);
    assert_true(strstr(text, close) > strstr(text, "{\"version\":2}"));
    client_close(&client);
}

static void a_pipeline_is_answered_to_its_end(void **state)
{
    struct fixture *f = *state;

    fixture_start(f);
    drain_a_pipeline(f, (const unsigned[]){ 0, 1, 2 });
}

static void a_pipeline_answered_backwards_is_answered_to_its_end(void **state)
{
    struct fixture *f = *state;

    fixture_start(f);
    drain_a_pipeline(f, (const unsigned[]){ 2, 1, 0 });
}

/* What comes behind the last answered request is not begun: its client may ask elsewhere. */
static void a_pipeline_takes_nothing_more(void **state)
{
    struct fixture *f = *state;

    fixture_start(f);
    struct client client = client_connect(f);
    post_balances(&client, 1);
    post_balances(&client, 2);
    assert_true(fixture_await(f, &f->requests, 2));
    rpc_server_drain(f->server);
    post_balances(&client, 3);
    let_run(f, 50);
    assert_int_equal(f->requests, 2);
    fixture_answer(f->kept[0]);
    fixture_answer(f->kept[1]);
    f->kept_count = 0;
    assert_true(client_await_close(f, &client));
    assert_non_null(strstr(client_text(&client), "{\"version\":2}"));
    assert_int_equal(f->requests, 2);
    client_close(&client);
}

/* A body whose first half had come is waited for, and its request is the last one. */
static void a_request_of_which_half_came_is_answered(void **state)
{
    struct fixture *f = *state;

    fixture_start(f);
    struct client client = client_connect(f);
    post_balances(&client, 1);
    client_send_text(&client, "POST " PATH_BALANCES " HTTP/1.1\r\nHost: x\r\nContent-Type: "
                              "application/json\r\nContent-Length: 17\r\n\r\n{\"playerId\"");
    assert_true(fixture_await(f, &f->requests, 1));
    fixture_settle(f);
    rpc_server_drain(f->server);
    fixture_answer(f->kept[0]);
    f->kept_count = 0;
    assert_true(client_await(f, &client, "{\"version\":1}", 1));
    assert_false(rpc_server_is_drained(f->server));
    client_send_text(&client, ":\"ab\"}");
    assert_true(fixture_await(f, &f->requests, 2));
    fixture_answer(f->kept[--f->kept_count]);
    assert_true(client_await_close(f, &client));
    assert_int_equal(times_of(client_text(&client), "connection: close\r\n"), 1);
    assert_non_null(strstr(client_text(&client), "{\"version\":2}"));
    client_close(&client);
}

static bool is_drained(void *user)
{
    const struct fixture *f = user;

    return rpc_server_is_drained(f->server);
}

/* The answer is with the server, and its client has read none of it: that is not drained. */
static void an_answer_that_is_not_read_yet_is_waited_for(void **state)
{
    static uint8_t bytes[LARGE_BYTES];
    struct fixture *f = *state;
    struct client client;

    fixture_start(f);
    client = client_connect(f);
    client_send_text(&client, "POST " PATH_BALANCES " HTTP/1.1\r\nHost: x\r\nContent-Type: "
                              "application/proto\r\nContent-Length: 5\r\n\r\n\x0A\3abc");
    assert_true(fixture_await(f, &f->requests, 1));
    rpc_server_drain(f->server);
    rpc_reply_encoded(f->kept[--f->kept_count], (struct slice){ bytes, sizeof bytes });
    assert_false(rpc_server_is_drained(f->server));
    let_run(f, 50);
    assert_false(rpc_server_is_drained(f->server));
    assert_true(client_await_close(f, &client));
    assert_true(client.in.size > sizeof bytes);
    assert_true(loop_run_until(f->loop, is_drained, f, FIXTURE_WAIT_MS));
    client_close(&client);
}

static void an_idle_server_is_drained_at_once(void **state)
{
    struct fixture *f = *state;

    f->keep = false;
    fixture_start(f);
    struct client client = client_connect(f);
    post_balances(&client, 1);
    assert_true(client_await(f, &client, "{\"version\":1}", 1));
    rpc_server_drain(f->server);
    assert_true(loop_run_until(f->loop, is_drained, f, 1000));
    assert_true(client_await_close(f, &client));
    client_close(&client);
}

/* The last stream id of the GOAWAY that came; -1 without one. */
static int64_t goaway_last(const struct client *client)
{
    for (size_t at = 0; at + 9 <= client->in.size;) {
        const uint8_t *p = client->in.data + at;
        size_t size = (size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2];
        if (p[3] == NGHTTP2_GOAWAY && at + 17 <= client->in.size)
            return (int64_t)p[9] << 24 | (int64_t)p[10] << 16 | (int64_t)p[11] << 8 | p[12];
        at += 9 + size;
    }
    return -1;
}

static void drain_at_the_first(void *user, struct rpc_request *request)
{
    struct fixture *f = user;

    if (f->requests++ == 0)
        rpc_server_drain(f->server);
    f->kept[f->kept_count++] = request;
}

/* A GOAWAY says that what is behind its last stream was not begun. So no request that is read
 * before the GOAWAY is written may be begun. */
static void what_goaway_leaves_out_was_not_begun(void **state)
{
    struct fixture *f = *state;
    struct peer peer;

    f->config.handlers.on_request = drain_at_the_first;
    fixture_start(f);
    peer_connect(f, &peer);
    let_run(f, 20);
    struct answer *first = peer_call(&peer, PATH_BALANCES, "application/grpc", BALANCES_ABC, NULL);
    struct answer *late = peer_call(&peer, PATH_BALANCES, "application/grpc", BALANCES_ABC, NULL);
    assert_true(fixture_await(f, &f->requests, 1)); /* Both came in one read. */
    assert_true(peer_await(f, &peer, late));
    assert_int_equal(late->error_code, NGHTTP2_REFUSED_STREAM);
    assert_int_equal(f->requests, 1);
    assert_false(rpc_server_is_drained(f->server));
    fixture_answer(f->kept[--f->kept_count]);
    assert_true(peer_await(f, &peer, first));
    assert_true(answer_has(first, "grpc-status: 0\n"));
    assert_true(peer_await(f, &peer, NULL));
    assert_true(peer.went_away);
    assert_true(loop_run_until(f->loop, is_drained, f, FIXTURE_WAIT_MS));
    peer_close(&peer);
}

/* It had sent a part of its preface when the drain began. */
static void a_connection_that_just_begins_is_told_to_go(void **state)
{
    static const char call[] = "\0\0\3\1\5\0\0\0\1\x83\x86\x84"; /* POST http / */
    struct fixture *f = *state;

    fixture_start(f);
    struct client client = client_connect(f);
    client_send(&client, PREFACE, 9);
    fixture_settle(f);
    rpc_server_drain(f->server);
    client_send_text(&client, &PREFACE[9]);
    client_send(&client, SETTINGS, sizeof SETTINGS - 1);
    client_send(&client, call, sizeof call - 1);
    assert_true(client_await_close(f, &client));
    assert_int_equal(goaway_last(&client), 0);
    assert_int_equal(rpc_server_stats(f->server)->requests, 1); /* Of fixture_settle. */
    client_close(&client);
}

/* Of a stream, whose server says something all the time, and whose client reads none of it. */
static void heartbeats_do_not_put_off_the_time_limit(void **state)
{
    struct fixture *f = *state;
    const struct http_stats *stats;
    Holdfast__V1__ListEntriesResponse page = HOLDFAST__V1__LIST_ENTRIES_RESPONSE__INIT;
    static char cursor[100000];

    memset(cursor, 'c', sizeof cursor - 1);
    f->config.limits.write_timeout_ms = 300;
    fixture_start(f);
    stats = rpc_server_stats(f->server);
    struct client client = client_connect(f);
    client_send_text(&client, "POST " PATH_ENTRIES " HTTP/1.1\r\nHost: x\r\nContent-Type: "
                              "application/connect+json\r\nContent-Length: 7\r\n\r\n");
    client_send(&client, "\0\0\0\0\2{}", 7);
    assert_true(fixture_await(f, &f->requests, 1));
    page.next_cursor = cursor;
    for (unsigned i = 0; i < 1000 && rpc_stream_send(f->kept[0], &page.base); i++)
        let_run(f, 2);
    page.next_cursor = cursor + sizeof cursor - 2;
    uint64_t end_ms = loop_now_ms(f->loop) + 5000;
    while (stats->timeouts == 0 && loop_now_ms(f->loop) < end_ms) {
        (void)rpc_stream_send(f->kept[0], &page.base);
        let_run(f, 10);
    }
    rpc_stream_end(f->kept[0], NULL);
    f->kept_count = 0;
    assert_int_equal(stats->timeouts, 1);
    assert_int_equal(f->cancels, 1);
    client_close(&client);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_pipeline_is_answered_to_its_end),
        TEST(a_pipeline_answered_backwards_is_answered_to_its_end),
        TEST(a_pipeline_takes_nothing_more),
        TEST(a_request_of_which_half_came_is_answered),
        TEST(an_answer_that_is_not_read_yet_is_waited_for),
        TEST(an_idle_server_is_drained_at_once),
        TEST(what_goaway_leaves_out_was_not_begun),
        TEST(a_connection_that_just_begins_is_told_to_go),
        TEST(heartbeats_do_not_put_off_the_time_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
