#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "idl/error_code.h"
#include "idl/method_errors.h"
#include "runtime/base/check.h"
#include "runtime/base/test_directory.h"
#include "runtime/rpc/http_fixture.h"
#include "runtime/rpc/rpc_header.h"
#include "runtime/rpc/rpc_status.h"
#include "runtime/tls/certs.h"
#include "runtime/tls/tls_session.h"

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

/* ---- headers ---- */

static void timeouts_are_read_in_every_unit(void **state)
{
    static const struct {
        const char *text;
        bool good;
        uint64_t ms;
    } grpc[] = { { "5S", true, 5000 },  { "1H", true, 3600000 },    { "2M", true, 120000 },
                 { "250m", true, 250 }, { "1u", true, 1 },          { "1001u", true, 2 },
                 { "1n", true, 1 },     { "99999999n", true, 100 }, { "123456789S", false, 0 },
                 { "S", false, 0 },     { "5", false, 0 },          { "-5S", false, 0 },
                 { "5s", false, 0 },    { "", false, 0 },           { "5.0S", false, 0 } };
    uint64_t ms;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(grpc); i++) {
        assert_int_equal(rpc_grpc_timeout_parse(slice_from_text(grpc[i].text), &ms), grpc[i].good);
        assert_true(!grpc[i].good || ms == grpc[i].ms);
    }
    assert_true(rpc_connect_timeout_parse(SLICE_LITERAL("9999999999"), &ms) && ms == 9999999999);
    assert_false(rpc_connect_timeout_parse(SLICE_LITERAL("12345678901"), &ms));
    assert_false(rpc_connect_timeout_parse(SLICE_LITERAL("1s"), &ms));
}

static void content_types_name_protocol_and_encoding(void **state)
{
    enum rpc_protocol protocol;
    enum rpc_form form;

    (void)state;
    assert_true(rpc_content_type_parse(SLICE_LITERAL("Application/JSON ; charset=utf-8"), &protocol,
                                       &form));
    assert_true(protocol == RPC_CONNECT && form == RPC_FORM_PLAIN_JSON);
    assert_true(rpc_content_type_parse(SLICE_LITERAL("application/grpc"), &protocol, &form));
    assert_true(protocol == RPC_GRPC && form == RPC_FORM_PROTO);
    assert_true(
        rpc_content_type_parse(SLICE_LITERAL("application/connect+json"), &protocol, &form));
    assert_true(protocol == RPC_CONNECT_STREAM && form == RPC_FORM_JSON);
    assert_false(rpc_content_type_parse(SLICE_LITERAL("application/grpcx"), &protocol, &form));
    assert_false(
        rpc_content_type_parse(SLICE_LITERAL("application/grpc-web-text"), &protocol, &form));
    assert_false(rpc_content_type_parse(SLICE_LITERAL(""), &protocol, &form));
}

static void key_and_origin_are_parsed(void **state)
{
    (void)state;
    assert_true(slice_equal(rpc_bearer_parse(SLICE_LITERAL("bearer  k1")), SLICE_LITERAL("k1")));
    assert_int_equal(rpc_bearer_parse(SLICE_LITERAL("Basic k1")).size, 0);
    assert_int_equal(rpc_bearer_parse(SLICE_LITERAL("Bearer ")).size, 0);
    assert_true(rpc_origin_allowed("https://a, https://b", SLICE_LITERAL("https://b")));
    assert_false(rpc_origin_allowed("https://a,https://b", SLICE_LITERAL("https://")));
    assert_false(rpc_origin_allowed(NULL, SLICE_LITERAL("https://a")));
    assert_true(rpc_origin_allowed("*", SLICE_LITERAL("https://a")));
}

static void every_error_code_has_a_status(void **state)
{
    (void)state;
    for (unsigned i = 0; i < holdfast__v1__error_code__descriptor.n_values; i++) {
        int code = holdfast__v1__error_code__descriptor.values[i].value;
        const struct rpc_status *status = rpc_status_get((Holdfast__V1__ErrorCode)code);
        assert_true(status->http >= 400 && status->grpc > 0 && status->connect != NULL);
        assert_true(code == 0 || status != rpc_status_get((Holdfast__V1__ErrorCode)0));
    }
    /* What a newer node says is not to be taken for "nothing was done". */
    assert_int_equal(rpc_status_get((Holdfast__V1__ErrorCode)999)->grpc, 2);
}

/* ---- calls ---- */

static void send_post(struct client *client, const char *path, const char *headers,
                      const char *body)
{
    struct buf out = { 0 };

    buf_printf(&out, "POST %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %zu\r\n\r\n%s", path,
               headers, strlen(body), body);
    client_send(client, out.data, out.size);
    buf_deinit(&out);
}

#define PLAIN "Content-Type: application/json\r\n"
#define JSON  PLAIN "Connect-Protocol-Version: 1\r\n"

/* Who speaks Connect's protocol says so, in a header or in the query. */
static void json_is_plain_but_for_connect(void **state)
{
    static const struct {
        const char *path, *headers;
        bool plain;
    } cases[] = {
        { PATH_GRANT, PLAIN, true },
        { PATH_GRANT "?connect=v2&x", PLAIN, true },
        { PATH_GRANT, JSON, false },
        { PATH_GRANT "?connect=v1", PLAIN, false },
        { PATH_GRANT "?x=y&connect=v1", PLAIN, false },
    };
    struct fixture *f = *state;

    fixture_start(f);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct client client = client_connect(f);
        send_post(&client, cases[i].path, cases[i].headers, "{\"currencies\":{\"gold\":1e99}}");
        assert_true(client_await(f, &client, "HTTP/1.1 400 ", 1));
        assert_true(client_await(f, &client, "}", 1));
        const char *text = client_text(&client);
        assert_int_equal(strstr(text, "\"error\":{\"code\":\"invalid_argument\"") != NULL,
                         cases[i].plain);
        assert_int_equal(strstr(text, "\"field\":\"currencies[\\\"gold\\\"].amount\"") != NULL,
                         cases[i].plain);
        assert_int_equal(strstr(text, "\"details\":[{\"type\"") != NULL, !cases[i].plain);
        assert_int_equal(strstr(text, "\"message\":\"currencies: not an array\"") != NULL,
                         !cases[i].plain);
        client_close(&client);
    }
    /* So does one whose Content-Type is refused. */
    struct client client = client_connect(f);
    send_post(&client, PATH_GRANT,
              "Content-Type: application/json; charset=utf-16\r\nConnect-Protocol-Version: 1\r\n",
              "{}");
    assert_true(client_await(f, &client, "HTTP/1.1 415 ", 1));
    assert_true(client_await(f, &client, "\"details\":[{\"type\"", 1));
    client_close(&client);
    assert_int_equal(f->requests, 0);
}

static void bad_json_is_answered_with_the_field(void **state)
{
    struct fixture *f = *state;
    fixture_start(f);
    struct client client = client_connect(f);

    send_post(&client, PATH_GRANT, JSON, "{\"currencies\":[{\"amount\":\"1e99\"}]}");
    assert_true(client_await(f, &client, "\"field\":\"currencies[0].amount\"", 1));
    assert_non_null(strstr(client_text(&client), "HTTP/1.1 400 "));
    assert_non_null(strstr(client_text(&client), "{\"code\":\"invalid_argument\",\"message\":\""));
    assert_non_null(strstr(client_text(&client), "\"type\":\"holdfast.v1.ErrorDetail\""));
    assert_int_equal(f->requests, 0);
    client_close(&client);
}

static void a_misspelt_method_is_answered_with_the_nearest(void **state)
{
    struct fixture *f = *state;
    fixture_start(f);
    struct client client = client_connect(f);

    send_post(&client, "/holdfast.v1.LedgerService/Grnat", JSON, "{}");
    assert_true(client_await(f, &client, "did you mean LedgerService/Grant?", 1));
    assert_non_null(strstr(client_text(&client), "HTTP/1.1 404 "));
    assert_non_null(strstr(client_text(&client), "{\"code\":\"unimplemented\""));
    /* Also where it is not called as methods are; what is far from all of them has no hint. */
    send_post(&client, "/LedgerService/Grant", "", "");
    assert_true(client_await(f, &client, "did you mean holdfast.v1.LedgerService/Grant?", 1));
    send_post(&client, "/holdfast.v1.Thief\xff\xc2\x9b/Steal", JSON, "{}");
    assert_true(client_await(f, &client, "no such method\"", 1));
    assert_null(strchr(client_text(&client), '\xff'));
    assert_int_equal(f->requests, 0);
    client_close(&client);
}

static bool nobody_may_enter(void *user, struct rpc_request *request,
                             Holdfast__V1__ErrorDetail *ret_detail)
{
    (void)user;
    ret_detail->retry_after_ms = 321;
    return request->method->id != METHOD_GRANT;
}

/* Its message is not read: this one would be refused as malformed. The connection goes on. */
static void who_may_not_enter_is_refused_unread(void **state)
{
    struct fixture *f = *state;

    f->config.handlers.may_enter = nobody_may_enter;
    fixture_start(f);
    struct client client = client_connect(f);

    send_post(&client, PATH_GRANT, JSON, "{not JSON");
    assert_true(client_await(f, &client, "\"retryAfterMs\":321", 1));
    assert_non_null(strstr(client_text(&client), "HTTP/1.1 429 "));
    assert_non_null(strstr(client_text(&client), "ERROR_CODE_THROTTLED"));
    assert_int_equal(f->requests, 0);
    send_post(&client, PATH_BALANCES, JSON, "{}");
    assert_true(client_await(f, &client, "HTTP/1.1 200 ", 1));
    assert_int_equal(f->requests, 1);
    assert_int_equal(rpc_server_stats(f->server)->requests_throttled, 1);
    client_close(&client);
}

/* Connect says 401; gRPC and gRPC-Web say it in their own way (see the conformance tests). */
static bool only_with_a_key(void *user, struct rpc_request *request,
                            Holdfast__V1__ErrorDetail *ret_detail)
{
    static char message[] = "no API key";

    (void)user;
    ret_detail->code = HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAUTHENTICATED;
    ret_detail->message = message;
    assert_null(request->message);
    assert_non_null(request->peer);
    return slice_equal(request->api_key, SLICE_LITERAL("secret"));
}

static void whose_key_is_missing_is_refused_unread(void **state)
{
    struct fixture *f = *state;

    f->config.handlers.may_enter = only_with_a_key;
    fixture_start(f);
    struct client client = client_connect(f);

    send_post(&client, PATH_GRANT, JSON, "{not JSON");
    assert_true(client_await(f, &client, "ERROR_CODE_UNAUTHENTICATED", 1));
    assert_non_null(strstr(client_text(&client), "HTTP/1.1 401 "));
    assert_null(strstr(client_text(&client), "retryAfterMs"));
    assert_non_null(strstr(client_text(&client), "www-authenticate: Bearer\r\n"));
    assert_int_equal(rpc_server_stats(f->server)->requests_throttled, 0);
    send_post(&client, PATH_BALANCES, JSON "Authorization: Bearer wrong\r\n", "{}");
    assert_true(
        client_await(f, &client, "www-authenticate: Bearer error=\"invalid_token\"\r\n", 1));
    send_post(&client, PATH_BALANCES, JSON "Authorization: Bearer secret\r\n", "{}");
    assert_true(client_await(f, &client, "HTTP/1.1 200 ", 1));
    assert_int_equal(f->requests, 1);
    client_close(&client);
}

static void a_nodes_bytes_become_json_or_an_internal_error(void **state)
{
    struct fixture *f = *state;

    f->keep = true;
    fixture_start(f);
    struct client client = client_connect(f);
    send_post(&client, PATH_BALANCES, JSON, "{}");
    send_post(&client, PATH_BALANCES, JSON, "{}");
    send_post(&client, PATH_BALANCES, "Content-Type: application/proto\r\n", "");
    assert_true(fixture_await(f, &f->requests, 3));
    rpc_reply_encoded(f->kept[0], SLICE_LITERAL("\x10\x07"));
    rpc_reply_encoded(f->kept[1], SLICE_LITERAL("\x10"));
    rpc_reply_encoded(f->kept[2], SLICE_LITERAL("as it is"));
    f->kept_count = 0;
    assert_true(client_await(f, &client, "as it is", 1));
    assert_non_null(strstr(client_text(&client), "{\"version\":\"7\"}"));
    assert_non_null(strstr(client_text(&client), "{\"code\":\"internal\""));
    client_close(&client);
}

/* "Nothing was done" is no reason to give up: each door says when to come back, in the details and
 * in Retry-After, also where the maker of the error said nothing of it. */
static void what_may_pass_says_when_to_come_back(void **state)
{
    struct fixture *f = *state;

    f->keep = true;
    fixture_start(f);
    struct client client = client_connect(f);
    send_post(&client, PATH_GRANT, JSON, "{}");
    assert_true(fixture_await(f, &f->requests, 1));
    fixture_fail(f->kept[--f->kept_count], HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAVAILABLE, "x");
    assert_true(client_await(f, &client, "\"retryAfterMs\":500", 1));
    assert_non_null(strstr(client_text(&client), "retry-after: 1\r\n"));
    send_post(&client, PATH_GRANT, JSON "Connect-Timeout-Ms: 0\r\n", "{}");
    assert_true(client_await(f, &client, "\"retryAfterMs\":100", 1));
    send_post(&client, PATH_GRANT, JSON, "{}");
    assert_true(fixture_await(f, &f->requests, 2));
    fixture_fail(f->kept[--f->kept_count], HOLDFAST__V1__ERROR_CODE__ERROR_CODE_SESSION_LOST, "y");
    assert_true(client_await(f, &client,
                             "\"message\":\"y\",\"outcome\":\"OUTCOME_NOT_APPLIED\","
                             "\"action\":\"ACTION_STOP_WRITING\"}",
                             1));
    assert_non_null(strstr(client_text(&client), "holdfast-error: session_lost\r\n"));
    assert_non_null(strstr(client_text(&client), "holdfast-action: stop_writing\r\n"));
    client_close(&client);
}

static bool nobody_reads_keys(void *user, struct rpc_request *request,
                              Holdfast__V1__ErrorDetail *ret_detail)
{
    (void)user;
    (void)request;
    ret_detail->code = HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAVAILABLE;
    return false;
}

static void a_door_that_is_closed_for_now_says_when_to_come_back(void **state)
{
    struct fixture *f = *state;

    f->config.handlers.may_enter = nobody_reads_keys;
    fixture_start(f);
    struct client client = client_connect(f);
    send_post(&client, PATH_GRANT, JSON, "{}");
    assert_true(client_await(f, &client, "ERROR_CODE_UNAVAILABLE", 1));
    assert_non_null(strstr(client_text(&client), "retry-after: 1\r\n"));
    client_close(&client);
}

/* A write whose answer cannot be read was carried out: that is no failure. */
static void an_answer_that_cannot_be_read_is_unknown_or_a_bug_as_the_method_says(void **state)
{
    struct fixture *f = *state;
    size_t count;
    const struct method_info *all = method_all(&count);
    unsigned requests = 0;

    f->keep = true;
    f->config.handlers.is_stream = NULL;
    fixture_start(f);
    struct client client = client_connect(f);
    for (size_t i = 0; i < count; i++) {
        char path[128];

        if (all[i].internal || all[i].route == METHOD_STREAM)
            continue;
        buf_clear(&client.in);
        snprintf(path, sizeof path, "/%s", all[i].name);
        send_post(&client, path, JSON, "{}");
        if (!fixture_await(f, &f->requests, ++requests))
            fail_msg("%s: %s", all[i].name, client_text(&client));
        rpc_reply_encoded(f->kept[--f->kept_count], SLICE_LITERAL("\x0a"));
        assert_true(client_await(f, &client, "could not be decoded", 1));
        bool unknown = strstr(client_text(&client), "ERROR_CODE_OUTCOME_UNKNOWN") != NULL;
        assert_int_equal(unknown, error_is_given(all[i].id, CODE(OUTCOME_UNKNOWN), false));
        assert_true(unknown || error_is_given(all[i].id, CODE(INTERNAL), false));
    }
    client_close(&client);
}

static void grpc_web_errors_travel_in_the_body(void **state)
{
    struct fixture *f = *state;

    f->keep = true;
    fixture_start(f);
    struct client client = client_connect(f);
    client_send_text(&client, "POST " PATH_GRANT " HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
                              "Content-Type: application/grpc-web+proto\r\n\r\n");
    client_send(&client, "\0\0\0\0\0", 5);
    assert_true(fixture_await(f, &f->requests, 1));
    fixture_fail(f->kept[--f->kept_count], HOLDFAST__V1__ERROR_CODE__ERROR_CODE_NOT_FOUND,
                 "no\n100%");
    assert_true(client_await(f, &client, "\r\n\r\n\x80", 1));
    assert_non_null(memmem(client.in.data, client.in.size, "grpc-status: 5\r\n", 16));
    assert_non_null(memmem(client.in.data, client.in.size, "grpc-message: no%0A100%25\r\n", 27));
    client_close(&client);
}

static void grpc_over_http_1_is_refused(void **state)
{
    struct fixture *f = *state;
    fixture_start(f);
    struct client client = client_connect(f);

    send_post(&client, PATH_GRANT, "Content-Type: application/grpc\r\n", "");
    assert_true(client_await(f, &client, "gRPC needs HTTP/2", 1));
    assert_non_null(strstr(client_text(&client), "HTTP/1.1 505 "));
    client_close(&client);
}

static void origins_are_told_what_they_may_do(void **state)
{
    struct fixture *f = *state;

    f->config.cors_origins = "https://console.example";
    fixture_start(f);
    struct client good = client_connect(f);
    struct client bad = client_connect(f);

    client_send_text(&good, "OPTIONS " PATH_GRANT " HTTP/1.1\r\nHost: x\r\n"
                            "Origin: https://console.example\r\n"
                            "Access-Control-Request-Method: POST\r\n\r\n");
    assert_true(client_await(f, &good, "\r\n\r\n", 1));
    assert_non_null(strstr(client_text(&good), "HTTP/1.1 204 "));
    assert_non_null(
        strstr(client_text(&good), "access-control-allow-origin: https://console.example\r\n"));
    assert_non_null(strstr(client_text(&good), "access-control-allow-headers: "));
    send_post(&good, PATH_GRANT, JSON "Origin: https://console.example\r\n", "{}");
    assert_true(client_await(f, &good, "access-control-expose-headers: ", 1));
    client_send_text(&bad, "OPTIONS " PATH_GRANT " HTTP/1.1\r\nHost: x\r\n"
                           "Origin: https://evil.example\r\n\r\n");
    assert_true(client_await(f, &bad, "\r\n\r\n", 1));
    assert_null(strstr(client_text(&bad), "access-control-allow"));
    client_close(&good);
    client_close(&bad);
}

/* ---- TLS ---- */

struct secure {
    struct client client;
    struct tls_session *session;
    char text[65536];
    size_t size;
    const char *awaited;
};

static bool secure_has(void *user)
{
    struct secure *secure = user;
    uint8_t bytes[16384];
    size_t size;

    while ((size = client_take(&secure->client, bytes, sizeof bytes)) > 0)
        assert_int_equal(tls_session_feed(secure->session, (struct slice){ bytes, size }), ERR_OK);
    while (tls_session_read(secure->session, (uint8_t *)secure->text + secure->size,
                            sizeof secure->text - 1 - secure->size, &size) == ERR_OK)
        secure->size += size;
    struct buf *out = tls_session_output(secure->session);
    client_send(&secure->client, out->data, out->size);
    buf_clear(out);
    return secure->client.closed ||
           (secure->awaited == NULL ? tls_session_is_established(secure->session)
                                    : strstr(secure->text, secure->awaited) != NULL);
}

static struct tls_config *tls_config_of(const char *folder, enum tls_side side, const char *alpn)
{
    char ca[64], cert[64], key[64];
    struct tls_options options = { .side = side, .alpn = { alpn } };
    struct tls_error error;
    struct tls_config *config;

    snprintf(ca, sizeof ca, "%s/ca.crt", folder);
    snprintf(cert, sizeof cert, "%s/r.crt", folder);
    snprintf(key, sizeof key, "%s/r.key", folder);
    options.ca.path = ca;
    options.verify_peer = side == TLS_CLIENT;
    if (side == TLS_SERVER) {
        options.cert.path = cert;
        options.key.path = key;
        options.alpn[0] = "h2";
        options.alpn[1] = "http/1.1";
    }
    if (tls_config_new(&options, &config, &error) != ERR_OK)
        fail_msg("%s", error.text);
    return config;
}

static void tls_serves_http_1_as_agreed_by_alpn(void **state)
{
    struct fixture *f = *state;
    static struct secure secure;
    char folder[TEST_DIRECTORY_BYTES];
    struct certs_leaf leaf = { .name = "r" };
    struct tls_error error;
    bool made;

    test_directory_make("rpc", folder);
    assert_int_equal(certs_make_ca(folder, "test", &made, &error), ERR_OK);
    assert_int_equal(certs_make_leaf(folder, &leaf, &made, &error), ERR_OK);
    f->config.tls = tls_config_of(folder, TLS_SERVER, NULL);
    struct tls_config *config = tls_config_of(folder, TLS_CLIENT, "http/1.1");
    fixture_start(f);
    tls_config_free(f->config.tls); /* The server holds it. */

    secure = (struct secure){ .client = client_connect(f) };
    assert_int_equal(tls_session_new(config, &secure.session), ERR_OK);
    assert_true(loop_run_until(f->loop, secure_has, &secure, FIXTURE_WAIT_MS));
    assert_string_equal(tls_session_alpn(secure.session), "http/1.1");
    for (int i = 0; i < 3; i++) {
        struct buf out = { 0 };
        put_post(&out, PATH_BALANCES, "{\"playerId\":\"abcd\"}");
        assert_int_equal(tls_session_write(secure.session, buf_slice(&out)), ERR_OK);
        buf_deinit(&out);
        secure.size = 0;
        memset(secure.text, 0, sizeof secure.text);
        secure.awaited = "{\"version\":4}";
        assert_true(loop_run_until(f->loop, secure_has, &secure, FIXTURE_WAIT_MS));
        assert_false(secure.client.closed);
    }
    tls_session_free(secure.session);
    tls_config_free(config);
    client_close(&secure.client);

    /* Plain text on the TLS port is no request: it is told what was forgotten. */
    unsigned requests = f->requests;
    struct client plain = client_connect(f);
    client_send_text(&plain, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(client_await_close(f, &plain));
    assert_non_null(strstr(client_text(&plain), "HTTP/1.1 400 "));
    assert_non_null(strstr(client_text(&plain), "call it with https"));
    assert_null(strstr(client_text(&plain), "ok"));
    assert_int_equal(f->requests, requests);
    client_close(&plain);
    test_directory_remove(folder);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timeouts_are_read_in_every_unit),
        cmocka_unit_test(content_types_name_protocol_and_encoding),
        cmocka_unit_test(key_and_origin_are_parsed),
        cmocka_unit_test(every_error_code_has_a_status),
        TEST(json_is_plain_but_for_connect),
        TEST(bad_json_is_answered_with_the_field),
        TEST(a_misspelt_method_is_answered_with_the_nearest),
        TEST(who_may_not_enter_is_refused_unread),
        TEST(whose_key_is_missing_is_refused_unread),
        TEST(a_nodes_bytes_become_json_or_an_internal_error),
        TEST(what_may_pass_says_when_to_come_back),
        TEST(a_door_that_is_closed_for_now_says_when_to_come_back),
        TEST(an_answer_that_cannot_be_read_is_unknown_or_a_bug_as_the_method_says),
        TEST(grpc_web_errors_travel_in_the_body),
        TEST(grpc_over_http_1_is_refused),
        TEST(origins_are_told_what_they_may_do),
        TEST(tls_serves_http_1_as_agreed_by_alpn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
