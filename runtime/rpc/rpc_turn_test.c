/* What one connection may ask for while others wait: few requests and bytes in a round of the
 * loop, and nothing for a moment once a full process has refused it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "idl/error_code.h"
#include "runtime/base/check.h"
#include "runtime/http/http_conn.h"
#include "runtime/rpc/h2_peer.h"
#include "runtime/rpc/rpc_call.h"

#define PIPELINED 500u
#define STREAMS   60u
#define PIPES     40u
#define EACH      30u
#define PEERS     12u
#define PLAYER    "0123456789012345678901234567890123456789012345678901234567890123"
#define PATH_PLAN "/holdfast.v1.ProfileService/UpdateProfile" /* As long as the port takes. */
#define HEALTH    "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"

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

/* Of all that has come, how much was looked at when `other` has its answer. */
static uint64_t requests_until_answered(struct fixture *f, struct client *other)
{
    assert_true(client_await(f, other, "ok\n", 1));
    return rpc_server_stats(f->server)->requests;
}

/* Calls, and requests that their heads are enough to answer, all in one write. */
static void others_are_answered_before_a_long_pipeline_is(void **state)
{
    static const char *const paths[] = { PATH_BALANCES, "/holdfast.v1.LedgerService/None" };

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        struct fixture *f = *state;
        struct buf out = { 0 };
        if (i == 0)
            fixture_start(f);
        struct client client = client_connect(f), other = client_connect(f);
        put_post(&out, PATH_BALANCES, "{\"playerId\":\"known\"}");
        client_send(&client, out.data, out.size); /* Proves it: more of it is read at once. */
        assert_true(client_await(f, &client, "HTTP/1.1 ", 1));
        buf_clear(&out);
        uint64_t before = rpc_server_stats(f->server)->requests;
        for (unsigned k = 0; k < PIPELINED; k++)
            put_post(&out, paths[i], "{\"playerId\":\"abc\"}");
        client_send(&client, out.data, out.size);
        client_send_text(&other, HEALTH);
        assert_in_range(requests_until_answered(f, &other) - before, 1, 3 * HTTP_TURN_REQUESTS + 1);
        assert_true(client_await(f, &client, "HTTP/1.1 ", 1 + PIPELINED));
        assert_int_equal(rpc_server_stats(f->server)->requests - before, PIPELINED + 1);
        client_close(&client);
        client_close(&other);
        buf_deinit(&out);
    }
}

/* The other's one request comes behind all of theirs. */
static void others_are_answered_before_many_pipelines_are(void **state)
{
    struct fixture *f = *state;
    struct client clients[PIPES];
    struct buf out = { 0 };

    fixture_start(f);
    for (unsigned i = 0; i < PIPES; i++)
        clients[i] = client_connect(f);
    struct client other = client_connect(f);
    fixture_settle(f);
    for (unsigned k = 0; k < EACH; k++)
        put_post(&out, PATH_BALANCES, "{\"playerId\":\"abc\"}");
    uint64_t before = rpc_server_stats(f->server)->requests;
    for (unsigned i = 0; i < PIPES; i++)
        client_send(&clients[i], out.data, out.size);
    client_send_text(&other, HEALTH);
    /* Of the round that it comes in, and of the one that it is answered in. */
    assert_in_range(requests_until_answered(f, &other) - before, 1,
                    2 * (HTTP_ROUND_REQUESTS + HTTP_TURN_REQUESTS + PIPES));
    for (unsigned i = 0; i < PIPES; i++) {
        assert_true(client_await(f, &clients[i], "HTTP/1.1 ", EACH));
        client_close(&clients[i]);
    }
    assert_int_equal(rpc_server_stats(f->server)->requests - before, PIPES * EACH + 1);
    client_close(&other);
    buf_deinit(&out);
}

static void others_are_answered_before_many_streams_are(void **state)
{
    struct fixture *f = *state;
    struct answer *last = NULL;
    int on = 1;
    struct peer peer;

    fixture_start(f);
    peer_connect(f, &peer);
    peer_call(&peer, PATH_BALANCES, "application/json", SLICE_LITERAL("{}"), NULL);
    struct client other = client_connect(f);
    assert_true(peer_await(f, &peer, &peer.answers[0]));
    fixture_settle(f);
    uint64_t before = rpc_server_stats(f->server)->requests;
    assert_int_equal(setsockopt(peer.client.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
    for (unsigned i = 0; i < STREAMS; i++)
        last = peer_call(&peer, PATH_BALANCES, "application/json",
                         SLICE_LITERAL("{\"playerId\":\"" PLAYER "\"}"), NULL);
    client_send_text(&other, HEALTH);
    assert_in_range(requests_until_answered(f, &other) - before, 1, STREAMS * 5 / 6);
    assert_true(peer_await(f, &peer, last));
    while (peer.closed_count < STREAMS + 1)
        assert_true(peer_await(f, &peer, &peer.answers[peer.closed_count]));
    assert_int_equal(rpc_server_stats(f->server)->requests - before, STREAMS + 1);
    assert_int_equal(rpc_server_stats(f->server)->head_bytes, 0);
    client_close(&other);
    peer_close(&peer);
}

static void others_are_answered_before_streams_of_many_connections_are(void **state)
{
    struct fixture *f = *state;
    struct peer *peers = mem_zalloc(PEERS * sizeof *peers);
    int on = 1;

    fixture_start(f);
    for (unsigned i = 0; i < PEERS; i++) {
        peer_connect(f, &peers[i]);
        peer_call(&peers[i], PATH_BALANCES, "application/json", SLICE_LITERAL("{}"), NULL);
        assert_true(peer_await(f, &peers[i], &peers[i].answers[0]));
        assert_int_equal(setsockopt(peers[i].client.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on),
                         0);
    }
    struct client other = client_connect(f);
    fixture_settle(f);
    uint64_t before = rpc_server_stats(f->server)->requests;
    for (unsigned i = 0; i < PEERS * EACH; i++)
        peer_call(&peers[i / EACH], PATH_BALANCES, "application/json", SLICE_LITERAL("{}"), NULL);
    client_send_text(&other, HEALTH);
    assert_in_range(requests_until_answered(f, &other) - before, 1,
                    2 * (HTTP_ROUND_REQUESTS + HTTP_TURN_REQUESTS + 2 * PEERS));
    for (unsigned i = 0; i < PEERS; i++) {
        while (peers[i].closed_count < EACH + 1)
            assert_true(peer_await(f, &peers[i], &peers[i].answers[peers[i].closed_count]));
        peer_close(&peers[i]);
    }
    assert_int_equal(rpc_server_stats(f->server)->requests - before, PEERS * EACH + 1);
    client_close(&other);
    free(peers);
}

/* libuv alone would read 32 buffers of it at once. The first path takes such a body; at the second
 * it is refused, and thrown away. */
static void others_are_answered_before_a_long_body_is_read(void **state)
{
    static const char *const paths[] = { PATH_PLAN, PATH_BALANCES };
    struct fixture *f = *state;
    static uint8_t body[1u << 20];
    char head[160];

    fixture_start(f);
    memset(body, ' ', sizeof body);
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        struct client client = client_connect(f), other = client_connect(f);
        fixture_settle(f);
        snprintf(head, sizeof head,
                 "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                 "Content-Length: %zu\r\n\r\n",
                 paths[i], sizeof body);
        client_send_text(&client, head);
        fixture_settle(f);
        uint64_t before = rpc_server_stats(f->server)->bytes_received;
        ssize_t sent = send(client.fd, body, sizeof body, MSG_DONTWAIT | MSG_NOSIGNAL);
        assert_true(sent > 12 * (ssize_t)HTTP_READ_BYTES);
        client_send_text(&other, HEALTH);
        (void)requests_until_answered(f, &other);
        assert_in_range(rpc_server_stats(f->server)->bytes_received - before, 1,
                        10 * HTTP_READ_BYTES);
        for (unsigned k = 0; k < 2u * sizeof body / HTTP_READ_BYTES; k++)
            fixture_settle(f);
        assert_true(rpc_server_stats(f->server)->bytes_received - before >= (uint64_t)sent);
        client_close(&client);
        client_close(&other);
    }
}

/* ---- a full process ---- */

/* The newest connection. */
static bool is_resting(const struct fixture *f)
{
    return f->server->http.conns->resting;
}

static bool one_is_resting(const struct fixture *f)
{
    const struct http_conn *conn = f->server->http.conns;

    while (conn != NULL && !conn->resting)
        conn = conn->next;
    return conn != NULL;
}

static struct told_by {
    bool full;
    uint32_t retry_after_ms;
} told_by;

static bool refuse_all(void *user, struct rpc_request *request,
                       Holdfast__V1__ErrorDetail *ret_detail)
{
    (void)user;
    request->is_full = told_by.full;
    ret_detail->retry_after_ms = told_by.retry_after_ms;
    return false;
}

/* The time from a refusal until the next request of the connection was looked at. */
static uint64_t rest_after_refusal(struct fixture *f)
{
    struct client client = client_connect(f);
    struct buf out = { 0 };

    put_post(&out, PATH_BALANCES, "{}");
    client_send(&client, out.data, out.size);
    assert_true(client_await(f, &client, "HTTP/1.1 429 ", 1));
    uint64_t refused_ms = loop_now_ms(f->loop);
    assert_int_equal(is_resting(f), told_by.full);
    assert_true(f->server->http.conns->rest.due_ms <= refused_ms + told_by.retry_after_ms);
    client_send(&client, out.data, out.size);
    assert_true(client_await(f, &client, "HTTP/1.1 429 ", 2));
    uint64_t rest_ms = loop_now_ms(f->loop) - refused_ms;
    client_close(&client); /* It rests again. */
    buf_deinit(&out);
    return rest_ms;
}

static void a_connection_rests_that_a_full_process_refused(void **state)
{
    struct fixture *f = *state;

    f->config.handlers.may_enter = refuse_all;
    fixture_start(f);
    told_by = (struct told_by){ true, 10000 };
    assert_true(rest_after_refusal(f) + 1 >= HTTP_FULL_REST_MS_MAX);
    told_by = (struct told_by){ true, 60 }; /* It may ask again sooner. */
    assert_true(rest_after_refusal(f) + 1 >= 60);
    told_by = (struct told_by){ false, 10000 }; /* For others there is room. */
    rest_after_refusal(f);
}

/* The endpoint's own limit, and what waits meanwhile is not lost. */
static void what_comes_while_a_connection_rests_is_answered(void **state)
{
    struct fixture *f = *state;
    struct buf out = { 0 };

    f->config.limits.requests_max = 1;
    f->keep = true;
    fixture_start(f);
    struct client first = client_connect(f), client = client_connect(f);
    put_post(&out, PATH_BALANCES, "{\"playerId\":\"abc\"}");
    client_send(&first, out.data, out.size);
    assert_true(fixture_await(f, &f->requests, 1));
    client_send(&client, out.data, out.size);
    client_send(&client, out.data, out.size);
    assert_true(client_await(f, &client, "HTTP/1.1 429 ", 1));
    assert_true(is_resting(f));
    assert_int_equal(rpc_server_stats(f->server)->requests_throttled, 1);
    f->keep = false;
    fixture_answer(f->kept[--f->kept_count]);
    assert_true(client_await(f, &client, "{\"version\":3}", 1));
    assert_false(is_resting(f));
    client_send(&client, out.data, out.size);
    assert_true(client_await(f, &client, "{\"version\":3}", 2));
    client_close(&first);
    client_close(&client);
    buf_deinit(&out);
}

/* ---- pipelines ---- */

static void answer_kept(struct fixture *f)
{
    size_t count = f->kept_count;

    f->kept_count = 0;
    for (size_t i = 0; i < count; i++)
        fixture_answer(f->kept[i]);
    fixture_settle(f);
}

static struct client pipeline_connect(struct fixture *f)
{
    struct client client = client_connect(f);
    struct buf out = { 0 };

    f->keep = true;
    for (unsigned k = 0; k < EACH; k++)
        put_post(&out, PATH_BALANCES, "{\"playerId\":\"abc\"}");
    client_send(&client, out.data, out.size);
    fixture_settle(f);
    buf_deinit(&out);
    return client;
}

static void a_pipeline_begins_with_few_and_grows_with_answers(void **state)
{
    struct fixture *f = *state;

    fixture_start(f);
    struct client client = pipeline_connect(f);
    assert_int_equal(f->kept_count, HTTP_PIPELINE_FIRST);
    answer_kept(f);
    assert_in_range(f->kept_count, 2 * HTTP_PIPELINE_FIRST, EACH - HTTP_PIPELINE_FIRST);
    answer_kept(f);
    assert_int_equal(f->requests, EACH);
    f->keep = false;
    assert_true(client_await(f, &client, "HTTP/1.1 200 ", EACH - (unsigned)f->kept_count));
    client_close(&client);
}

/* Without room for their answers. */
static void refuse_kept(struct fixture *f)
{
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;
    size_t count = f->kept_count;

    detail.code = HOLDFAST__V1__ERROR_CODE__ERROR_CODE_THROTTLED;
    detail.retry_after_ms = 60;
    f->kept_count = 0;
    for (size_t i = 0; i < count; i++) {
        f->kept[i]->lacks_room = true;
        rpc_fail(f->kept[i], &detail);
    }
}

static void a_pipeline_rests_that_was_refused_for_room_and_goes_on_one_by_one(void **state)
{
    struct fixture *f = *state;

    fixture_start(f);
    struct client client = pipeline_connect(f);
    for (unsigned asked = HTTP_PIPELINE_FIRST + 1; asked <= HTTP_PIPELINE_FIRST + 3; asked++) {
        uint64_t refused_ms = loop_now_ms(f->loop);
        refuse_kept(f);
        assert_true(one_is_resting(f));
        assert_true(fixture_await(f, &f->requests, asked));
        assert_true(loop_now_ms(f->loop) + 1 >= refused_ms + 60);
        fixture_settle(f);
        assert_int_equal(f->kept_count, 1);
    }
    answer_kept(f);
    assert_int_equal(f->kept_count, 2);
    client_close(&client);
}

/* A proxy's connection has one caller after the other. */
static void a_connection_does_not_rest_whose_only_request_was_refused_for_room(void **state)
{
    struct fixture *f = *state;
    struct buf out = { 0 };

    f->keep = true;
    fixture_start(f);
    struct client client = client_connect(f);
    put_post(&out, PATH_BALANCES, "{}");
    client_send(&client, out.data, out.size);
    assert_true(fixture_await(f, &f->requests, 1));
    refuse_kept(f);
    assert_false(one_is_resting(f));
    client_close(&client);
    buf_deinit(&out);
}

/* It has many callers. */
static void a_connection_of_http_2_does_not_rest(void **state)
{
    struct fixture *f = *state;
    struct peer peer;

    f->config.handlers.may_enter = refuse_all;
    told_by = (struct told_by){ true, 10000 };
    fixture_start(f);
    peer_connect(f, &peer);
    struct answer *answer =
        peer_call(&peer, PATH_BALANCES, "application/json", SLICE_LITERAL("{}"), NULL);
    assert_true(peer_await(f, &peer, answer));
    assert_true(answer_has(answer, ":status: 429\n"));
    assert_false(is_resting(f));
    peer_close(&peer);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(others_are_answered_before_a_long_pipeline_is),
        TEST(others_are_answered_before_many_pipelines_are),
        TEST(others_are_answered_before_many_streams_are),
        TEST(others_are_answered_before_streams_of_many_connections_are),
        TEST(others_are_answered_before_a_long_body_is_read),
        TEST(a_connection_rests_that_a_full_process_refused),
        TEST(what_comes_while_a_connection_rests_is_answered),
        TEST(a_pipeline_begins_with_few_and_grows_with_answers),
        TEST(a_pipeline_rests_that_was_refused_for_room_and_goes_on_one_by_one),
        TEST(a_connection_does_not_rest_whose_only_request_was_refused_for_room),
        TEST(a_connection_of_http_2_does_not_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
