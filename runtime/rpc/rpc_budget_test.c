/* What a request may hold before it is believed: by its head alone it is let in or refused, and
 * what it sends counts against budgets, which are empty again afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "idl/error_code.h"
#include "runtime/base/check.h"
#include "runtime/base/utf8.h"
#include "runtime/rpc/http_fixture.h"
#include "runtime/rpc/rpc_head.h"
#include "runtime/rpc/rpc_host.h"

#define JSON      "Content-Type: application/json\r\n"
#define SLOW_MS   700u
#define BODY_MAX  4000u
#define PATH_PLAN "/holdfast.v1.ProfileService/UpdateProfile" /* As long as the port takes. */

static int set_up(void **state)
{
    static struct fixture fixture;

    fixture_init(&fixture);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    const struct http_stats *stats = rpc_server_stats(f->server);

    fixture_settle(f);
    assert_int_equal(stats->buffered_bytes, 0);
    assert_int_equal(stats->keyless_bytes, 0);
    fixture_stop(f);
    return 0;
}

static uint64_t refused(struct fixture *f, enum http_refused why)
{
    return rpc_server_stats(f->server)->refused[why];
}

static void send_head(struct client *client, const char *path, const char *headers)
{
    char text[512];

    snprintf(text, sizeof text, "POST %s HTTP/1.1\r\nHost: x\r\n" JSON "%s\r\n", path, headers);
    client_send_text(client, text);
}

static void send_bytes(struct client *client, size_t size)
{
    for (size_t i = 0; i < size; i++)
        client_send(client, " ", 1);
}

static bool never(void *user)
{
    (void)user;
    return false;
}

/* Whether the connection ends with it or not. */
static bool comes(struct fixture *f, struct client *client, const char *text)
{
    (void)client_await(f, client, text, 1);
    return strstr(client_text(client), text) != NULL;
}

static void wait_ms(struct fixture *f, uint32_t ms)
{
    (void)loop_run_until(f->loop, never, NULL, ms);
}

static bool with_a_key(void *user, struct rpc_request *request,
                       Holdfast__V1__ErrorDetail *ret_detail)
{
    (void)user;
    ret_detail->code = HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAUTHENTICATED;
    ret_detail->message = text_lend("no key");
    request->account = request->api_key.size;
    return request->api_key.size > 0;
}

/* Before a byte of the body has come, however long it would be. */
static void without_a_key_the_head_is_answered(void **state)
{
    struct fixture *f = *state;

    f->config.handlers.may_enter = with_a_key;
    fixture_start(f);
    struct client client = client_connect(f);
    send_head(&client, PATH_PLAN, "Content-Length: 4000000\r\n");
    assert_true(client_await_close(f, &client));
    assert_non_null(strstr(client_text(&client), "HTTP/1.1 401 "));
    assert_non_null(strstr(client_text(&client), "connection: close\r\n"));
    client_close(&client);
    client = client_connect(f);
    send_head(&client, PATH_PLAN, "Expect: 100-continue\r\nContent-Length: 5\r\n");
    assert_true(client_await_close(f, &client));
    assert_null(strstr(client_text(&client), "100 Continue"));
    client_close(&client);
    assert_int_equal(f->requests, 0);
}

static struct {
    unsigned count;
    Holdfast__V1__ErrorCode code;
    bool has_method, has_key;
} told;

static void note_refused(void *user, const struct rpc_request *request,
                         Holdfast__V1__ErrorCode code)
{
    (void)user;
    told.count++;
    told.code = code;
    told.has_method = request->method != NULL;
    told.has_key = slice_equal(request->api_key, SLICE_LITERAL("k"));
    assert_non_null(strstr(request->peer, "127.0.0.1:"));
}

/* Who lets callers in, or takes their requests, tells of those that it refuses. */
static void what_is_refused_before_it_is_a_request_is_told_once(void **state)
{
    static const struct {
        const char *path, *headers, *body;
        Holdfast__V1__ErrorCode code;
        bool has_method;
    } cases[] = {
        { PATH_GRANT, "Content-Length: 3\r\n", "{x}", CODE(INVALID_ARGUMENT), true },
        { PATH_GRANT, "Connect-Timeout-Ms: soon\r\nContent-Length: 2\r\n", "{}",
          CODE(INVALID_ARGUMENT), true },
        { PATH_GRANT, "Content-Length: 999999\r\n", "", CODE(TOO_LARGE), true },
        { "/holdfast.v1.LedgerService/Grand", "Content-Length: 2\r\n", "{}", CODE(UNIMPLEMENTED),
          false },
    };
    struct fixture *f = *state;
    char headers[128];

    told.count = 0;
    f->config.handlers.may_enter = with_a_key;
    f->config.handlers.on_refused = note_refused;
    fixture_start(f);
    struct client client = client_connect(f);
    send_head(&client, PATH_GRANT, "Content-Length: 2\r\n");
    client_send_text(&client, "{}");
    assert_true(client_await(f, &client, "HTTP/1.1 401 ", 1));
    client_close(&client);
    assert_int_equal(told.count, 0);
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        client = client_connect(f);
        snprintf(headers, sizeof headers, "Authorization: Bearer k\r\n%s", cases[i].headers);
        send_head(&client, cases[i].path, headers);
        client_send_text(&client, cases[i].body);
        assert_true(fixture_await(f, &told.count, i + 1));
        client_close(&client);
        assert_int_equal(told.code, cases[i].code);
        assert_int_equal(told.has_method, cases[i].has_method);
        assert_true(told.has_key || !told.has_method);
    }
    fixture_settle(f);
    assert_int_equal(told.count, ARRAY_SIZE(cases));
    assert_int_equal(f->requests, 0);
}

/* Short bodies of refused requests are thrown away, and what follows is the next request. */
static void a_connection_outlives_refused_requests(void **state)
{
    struct fixture *f = *state;

    f->config.handlers.may_enter = with_a_key;
    fixture_start(f);
    struct client client = client_connect(f);
    send_head(&client, PATH_GRANT, "Content-Length: 4\r\n");
    assert_true(client_await(f, &client, "HTTP/1.1 401 ", 1));
    client_send_text(&client, "GET ");
    send_head(&client, PATH_GRANT, "Transfer-Encoding: chunked\r\n");
    client_send_text(&client, "3\r\nGET\r\n0\r\nTrailer: x\r\n\r\n");
    send_head(&client, PATH_BALANCES, "Authorization: Bearer k\r\nContent-Length: 2\r\n");
    client_send_text(&client, "{}");
    assert_true(client_await(f, &client, "HTTP/1.1 200 ", 1));
    assert_true(client_await(f, &client, "HTTP/1.1 401 ", 2));
    assert_int_equal(f->requests, 1);
    /* One that is malformed, or has no end, ends the connection without another answer. */
    send_head(&client, PATH_GRANT, "Transfer-Encoding: chunked\r\n");
    assert_true(client_await(f, &client, "HTTP/1.1 401 ", 3));
    client_send_text(&client, "zz\r\n");
    assert_true(client_await_close(f, &client));
    client_close(&client);
}

static void each_method_has_its_limit(void **state)
{
    static const struct {
        const char *path;
        const char *limit;
    } cases[] = { { PATH_BALANCES, "4096" }, { PATH_GRANT, "131072" }, { PATH_PLAN, "4194304" } };
    struct fixture *f = *state;
    char text[64];

    fixture_start(f);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct client client = client_connect(f);
        snprintf(text, sizeof text, "Content-Length: %s1\r\n", cases[i].limit);
        send_head(&client, cases[i].path, text);
        assert_true(client_await_close(f, &client));
        assert_non_null(strstr(client_text(&client), "HTTP/1.1 413 "));
        snprintf(text, sizeof text, "\"limit\":\"%s\"", cases[i].limit);
        assert_non_null(strstr(client_text(&client), text));
        client_close(&client);
    }
    assert_int_equal(refused(f, HTTP_REFUSED_BODY_SIZE), ARRAY_SIZE(cases));
}

static void start_small(struct fixture *f, uint32_t address_percent, uint32_t key_percent)
{
    f->config.limits.body_bytes_max = BODY_MAX;
    f->config.limits.buffered_bytes_max = 10000;
    f->config.limits.bodies_address_percent = address_percent;
    f->config.limits.bodies_key_percent = key_percent;
    f->config.handlers.may_enter = with_a_key;
    fixture_start(f);
}

/* Two bodies of one owner are more than his share; `second` is the key of the other one. */
static void assert_shares(struct fixture *f, const char *second, const char *status)
{
    struct client one = client_connect(f);
    struct client two = client_connect(f);
    char headers[64];

    send_head(&one, PATH_PLAN, "Authorization: Bearer k\r\nContent-Length: 3500\r\n");
    send_bytes(&one, 3000);
    fixture_settle(f);
    snprintf(headers, sizeof headers, "Authorization: Bearer %s\r\nContent-Length: 3500\r\n",
             second);
    send_head(&two, PATH_PLAN, headers);
    send_bytes(&two, 3500);
    assert_true(comes(f, &two, status));
    client_close(&one); /* In the middle of its body. */
    client_close(&two);
}

static void an_address_has_a_share(void **state)
{
    struct fixture *f = *state;

    start_small(f, 10, 100);
    assert_shares(f, "other", "HTTP/1.1 429 ");
    assert_int_equal(refused(f, HTTP_REFUSED_BODIES_ADDRESS), 1);
}

static void a_key_has_a_share(void **state)
{
    struct fixture *f = *state;

    start_small(f, 100, 10);
    assert_shares(f, "k", "HTTP/1.1 429 ");
    assert_int_equal(refused(f, HTTP_REFUSED_BODIES_KEY), 1);
    assert_shares(f, "other", "HTTP/1.1 400 "); /* Its body is read: blanks are no JSON. */
}

/* The budget is full of bodies that stopped: each new one takes the place of the slowest. */
static void a_slow_body_loses_to_a_fast_one(void **state)
{
    struct fixture *f = *state;
    struct client slow[3];

    start_small(f, 200, 200); /* All of them have one address here. */
    for (size_t i = 0; i < ARRAY_SIZE(slow); i++) {
        slow[i] = client_connect(f);
        send_head(&slow[i], PATH_PLAN, "Authorization: Bearer k\r\nContent-Length: 4000\r\n");
        send_bytes(&slow[i], 3000 + i * 100); /* The first is the slowest. */
    }
    wait_ms(f, SLOW_MS);
    struct client fast = client_connect(f);
    send_head(&fast, PATH_PLAN, "Authorization: Bearer k\r\nContent-Length: 2000\r\n");
    send_bytes(&fast, 2000);
    if (!comes(f, &fast, "HTTP/1.1 400 ")) /* Read: blanks are no JSON. */
        fail_msg("%s", client_text(&fast));
    assert_true(comes(f, &slow[0], "HTTP/1.1 503 "));
    assert_non_null(strstr(client_text(&slow[0]), "retry-after: "));
    assert_int_equal(refused(f, HTTP_REFUSED_BODY_SLOW), 1);
    assert_int_equal(slow[1].in.size + slow[2].in.size, 0);
    client_close(&fast);
    for (size_t i = 0; i < ARRAY_SIZE(slow); i++)
        client_close(&slow[i]);
}

static void heads_have_budgets(void **state)
{
    struct fixture *f = *state;

    f->config.limits.heads_connection_bytes_max = 10000;
    fixture_start(f);
    struct client client = client_connect(f);
    client_send_text(&client, "POST / HTTP/1.1\r\nHost: x\r\n" JSON "X: ");
    for (size_t i = 0; i < 12000; i++)
        client_send(&client, "y", 1);
    assert_true(client_await_close(f, &client));
    assert_non_null(strstr(client_text(&client), "HTTP/1.1 431 "));
    assert_true(refused(f, HTTP_REFUSED_HEADS_CONNECTION) > 0);
    client_close(&client);
    fixture_settle(f);
    assert_true(rpc_server_stats(f->server)->head_bytes < 10000);
}

/* A request that waits for its handler keeps what is needed of its head, and no more. */
static void what_waits_keeps_little_of_its_head(void **state)
{
    struct fixture *f = *state;
    char text[8192];

    f->keep = true;
    fixture_start(f);
    struct client client = client_connect(f);
    memset(text, 'y', sizeof text);
    memcpy(text, "X: ", 3);
    memcpy(text + sizeof text - 3, "\r\n", 3);
    client_send_text(&client, "POST " PATH_GRANT " HTTP/1.1\r\nHost: x\r\n" JSON
                              "Authorization: Bearer k\r\nIdempotency-Key: i\r\n");
    client_send_text(&client, text);
    client_send_text(&client, "Content-Length: 2\r\n\r\n{}");
    assert_true(fixture_await(f, &f->requests, 1));
    assert_true(rpc_server_stats(f->server)->head_bytes < 6000);
    assert_true(slice_equal(f->kept[0]->api_key, SLICE_LITERAL("k")));
    assert_true(slice_equal(f->kept[0]->idempotency_key, SLICE_LITERAL("i")));
    client_close(&client);
    while (f->kept_count > 0)
        fixture_answer(f->kept[--f->kept_count]);
    f->keep = false;
}

/* The description of the API needs no key: callers that do not read it take an eighth of the room
 * for answers, and leave the rest to those that showed a key. */
static void documents_leave_room_for_answers(void **state)
{
    static const char ask[] = "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n";
    struct fixture *f = *state;

    f->config.limits.waiting_bytes_max = 8000000;
    fixture_start(f);
    struct client stranger = client_connect(f), known = client_connect(f);
    const struct http_stats *stats = rpc_server_stats(f->server);
    for (int i = 0; i < 2000 && refused(f, HTTP_REFUSED_STRANGERS) == 0; i++) {
        for (int n = 0; n < 20; n++)
            (void)!send(stranger.fd, ask, sizeof ask - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        fixture_settle(f);
        assert_true(stats->stranger_bytes < 1000000 + 8192);
    }
    assert_true(refused(f, HTTP_REFUSED_STRANGERS) > 0);
    send_head(&known, PATH_BALANCES, "Content-Length: 2\r\n");
    client_send_text(&known, "{}");
    assert_true(client_await(f, &known, "HTTP/1.1 ", 1));
    client_send_text(&known, ask);
    assert_true(client_await(f, &known, "{\"openapi\":", 1));
    client_close(&stranger);
    client_close(&known);
    fixture_settle(f);
    assert_int_equal(stats->stranger_bytes, 0);
    assert_int_equal(stats->waiting_bytes, 0);
}

static void headers_that_must_be_single_are(void **state)
{
    static const char *const names[] = { "authorization", "holdfast-authority", "idempotency-key",
                                         "content-type",  "if-match",           "if-none-match",
                                         "origin" };
    struct fixture *f = *state;
    char headers[128], wanted[64];

    fixture_start(f);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct client client = client_connect(f);
        snprintf(headers, sizeof headers, "%s: a\r\n%s: secret\r\nContent-Length: 0\r\n", names[i],
                 names[i]);
        send_head(&client, PATH_BALANCES, headers);
        assert_true(client_await(f, &client, "HTTP/1.1 400 ", 1));
        snprintf(wanted, sizeof wanted, "\"field\":\"%s\"", names[i]);
        if (strstr(client_text(&client), wanted) == NULL)
            fail_msg("%s: %s", names[i], client_text(&client));
        assert_null(strstr(client_text(&client), "secret"));
        client_close(&client);
    }
    assert_int_equal(refused(f, HTTP_REFUSED_HEADER_TWICE), ARRAY_SIZE(names));
    assert_int_equal(f->requests, 0);
}

static void http_2_begins_with_its_preface(void **state)
{
    struct fixture *f = *state;

    fixture_start(f);
    struct client client = client_connect(f);
    client_send_text(&client, "POST " PATH_GRANT " HTTP/2.0\r\nHost: x\r\n" JSON "\r\n");
    assert_true(client_await_close(f, &client));
    assert_non_null(strstr(client_text(&client), "HTTP/1.1 505 "));
    client_close(&client);
}

static void bytes_that_are_no_text_are_escaped(void **state)
{
    struct fixture *f = *state;

    fixture_start(f);
    struct client client = client_connect(f);
    send_head(&client, PATH_BALANCES, "Connect-Timeout-Ms: \xff\xfe\r\nContent-Length: 0\r\n");
    assert_true(client_await(f, &client, "\\\\xff\\\\xfe", 1));
    assert_true(utf8_valid(slice_from_text(client_text(&client))));
    client_close(&client);
}

static void host_is_one_of_the_names(void **state)
{
    struct fixture *f = *state;
    static const char names[] = "localhost, 127.0.0.1,[::1]";

    assert_true(rpc_head_host_is(names, SLICE_LITERAL("LocalHost:7400")));
    assert_true(rpc_head_host_is(names, SLICE_LITERAL("127.0.0.1")));
    assert_true(rpc_head_host_is(names, SLICE_LITERAL("[::1]:80")));
    assert_true(rpc_head_host_is("*", SLICE_LITERAL("any")));
    assert_false(rpc_head_host_is(names, SLICE_LITERAL("localhost.evil")));
    assert_false(rpc_head_host_is(names, SLICE_LITERAL("[::1")));
    assert_false(rpc_head_host_is(names, SLICE_LITERAL("")));
    assert_false(rpc_head_host_is("", SLICE_LITERAL("localhost")));
    static const char unlisted[] = RPC_HOST_ADDRESS "," RPC_HOST_PLAIN ",*.internal";
    assert_true(rpc_head_host_is(unlisted, SLICE_LITERAL("192.168.1.20:7400")));
    assert_true(rpc_head_host_is(unlisted, SLICE_LITERAL("[fe80::1]:7400")));
    assert_true(rpc_head_host_is(unlisted, SLICE_LITERAL("holdfast:7400")));
    assert_true(rpc_head_host_is(unlisted, SLICE_LITERAL("a.b.Internal")));
    assert_false(rpc_head_host_is(unlisted, SLICE_LITERAL("192.168.1.20.nip.io")));
    assert_false(rpc_head_host_is(unlisted, SLICE_LITERAL("192.168.1")));
    assert_false(rpc_head_host_is(unlisted, SLICE_LITERAL("[evil]")));
    assert_false(rpc_head_host_is(unlisted, SLICE_LITERAL("evil.")));
    assert_false(rpc_head_host_is(unlisted, SLICE_LITERAL(".internal")));
    assert_false(rpc_head_host_is(unlisted, SLICE_LITERAL("xinternal.example")));
    assert_false(rpc_head_host_is(unlisted, SLICE_LITERAL("")));
    f->config.hosts = "x";
    fixture_start(f);
    struct client client = client_connect(f);
    client_send_text(&client, "GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert_true(client_await(f, &client, "HTTP/1.1 403 ", 1));
    assert_true(client_await(f, &client, "--hosts-allowed", 1));
    client_send_text(&client, "GET /healthz HTTP/1.1\r\nHost: x:1\r\n\r\n");
    assert_true(client_await(f, &client, "HTTP/1.1 200 ", 1));
    client_close(&client);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(without_a_key_the_head_is_answered),
        TEST(what_is_refused_before_it_is_a_request_is_told_once),
        TEST(a_connection_outlives_refused_requests),
        TEST(each_method_has_its_limit),
        TEST(an_address_has_a_share),
        TEST(a_key_has_a_share),
        TEST(a_slow_body_loses_to_a_fast_one),
        TEST(heads_have_budgets),
        TEST(what_waits_keeps_little_of_its_head),
        TEST(documents_leave_room_for_answers),
        TEST(headers_that_must_be_single_are),
        TEST(http_2_begins_with_its_preface),
        TEST(bytes_that_are_no_text_are_escaped),
        TEST(host_is_one_of_the_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
