/* What the server refuses by itself, as a stock client of each protocol reads it: over HTTP/1.1,
 * whose callers speak Connect and gRPC-Web. h2_test.c has gRPC. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/rpc/http_fixture.h"
#include "runtime/rpc/rpc_header.h"
#include "runtime/rpc/rpc_status.h"

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

enum speech { UNARY, STREAM, WEB, GRPC, SPEECH_COUNT };

static const char *const types[SPEECH_COUNT] = { "application/json", "application/connect+json",
                                                 "application/grpc-web+proto", "application/grpc" };

/* That the answer says `code` in the form of its protocol. `http_status`: of an unary call. */
static void assert_says(const struct told *told, enum speech speech, const char *code,
                        unsigned http_status)
{
    char text[64];

    if (speech == UNARY || speech == STREAM)
        snprintf(text, sizeof text, "\"code\":\"%s\"", code);
    else
        snprintf(text, sizeof text, "grpc-status: %s\r\n", code);
    bool good = told->status == (speech == UNARY ? http_status : 200);
    switch (speech) {
    case UNARY:
        good = good && told_has(told, "content-type: application/json\r\n") &&
               told_body_has(told, text) && told->body.data[0] == '{';
        break;
    case STREAM:
        good = good && told_has(told, "content-type: application/connect+json\r\n") &&
               told_body_has(told, text) && told->body.data[0] == 2;
        break;
    case WEB:
        good = good && told_has(told, "content-type: application/grpc-web+proto\r\n") &&
               told_body_has(told, text) && told->body.data[0] == 0x80;
        break;
    case GRPC:
    case SPEECH_COUNT:
        good = good && told_has(told, "content-type: application/grpc+proto\r\n") &&
               told_has(told, text) && told->body.size == 0;
        break;
    }
    if (!good)
        fail_msg("wanted %s %u, got %u: %s %.*s", code, http_status, told->status, told->head,
                 (int)told->body.size, (const char *)told->body.data);
}

/* ---- limits and the grammar of HTTP ---- */

struct refused {
    const char *name;
    bool is_later;    /* Than the head, by which gRPC over HTTP/1.1 is refused first. */
    const char *head; /* Behind the Content-Type. */
    size_t padding;   /* Bytes of a header behind that. */
    unsigned fields;  /* Or so many headers. */
    const char *rest;
    const char *connect;
    const char *grpc;
    unsigned http_status;
};

static const struct refused refusals[] = {
    { "long body", true, "Content-Length: 99999999\r\n\r\n", 0, 0, "", "resource_exhausted", "8",
      413 },
    { "long chunk", true, "Transfer-Encoding: chunked\r\n\r\nfff\r\n", 0, 0, "chunk",
      "resource_exhausted", "8", 413 },
    { "slow body", true, "Content-Length: 9\r\n\r\nx", 0, 0, "", "deadline_exceeded", "4", 408 },
    { "slow head", false, "Content-Length: 9\r\nHalf: he", 0, 0, "", "deadline_exceeded", "4",
      408 },
    { "long head", false, "Long: ", 20000, 0, "\r\n\r\n", "resource_exhausted", "8", 431 },
    { "endless head", false, "Long: ", 20000, 0, "", "resource_exhausted", "8", 431 },
    { "many headers", false, "", 0, 100, "\r\n", "resource_exhausted", "8", 431 },
    { "no room", true, "Content-Length: 3000\r\n\r\n", 0, 0, "chunk", "resource_exhausted", "8",
      503 },
};

/* A method that answers in that way. */
static const char *path_of(enum speech speech)
{
    return speech == STREAM ? PATH_ENTRIES : PATH_GRANT;
}

static void put_refused(const struct refused *refused, enum speech speech, struct buf *out)
{
    const char *type = types[speech];

    buf_printf(out, "POST %s HTTP/1.1\r\nHost: x\r\nOrigin: https://a\r\n", path_of(speech));
    for (unsigned i = 0; i < refused->fields; i++)
        buf_printf(out, "X-%u: y\r\n", i);
    buf_printf(out, "content-TYPE:%s \r\n%s", type, refused->head);
    for (size_t i = 0; i < refused->padding; i++)
        buf_put_u8(out, 'y');
    if (strcmp(refused->rest, "chunk") == 0) {
        for (size_t i = 0; i < 0xfff; i++)
            buf_put_u8(out, 'z');
    } else {
        buf_printf(out, "%s", refused->rest);
    }
}

static void refusals_speak_the_callers_protocol(void **state)
{
    struct fixture *f = *state;

    f->config.cors_origins = "https://a";
    f->config.limits.body_bytes_max = 4000;
    f->config.limits.buffered_bytes_max = 2999;
    f->config.limits.header_timeout_ms = 150;
    f->config.limits.body_timeout_ms = 150;
    fixture_start(f);
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        for (enum speech speech = UNARY; speech < SPEECH_COUNT; speech++) {
            const struct refused *refused = &refusals[i];
            struct buf out = { 0 };
            put_refused(refused, speech, &out);
            struct told told = fixture_ask_raw(f, buf_slice(&out));
            if (speech == GRPC && refused->is_later) {
                assert_int_equal(told.status, 505);
            } else {
                assert_says(&told, speech, speech <= STREAM ? refused->connect : refused->grpc,
                            refused->http_status);
                assert_true(told_has(&told, "connection: close\r\n"));
            }
            assert_true(told_has(&told, "access-control-allow-origin: https://a\r\n"));
            told_deinit(&told);
            buf_deinit(&out);
        }
    }
    assert_int_equal(f->requests, 0);
}

/* RFC 9112 wants 400 for these; what gRPC knows goes into the head. */
static void what_is_no_http_stays_400(void **state)
{
    static const char *const heads[] = {
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        "X : y\r\n\r\n",
        "Host: twice\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    };
    struct fixture *f = *state;

    fixture_start(f);
    for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
        for (enum speech speech = UNARY; speech < SPEECH_COUNT; speech++) {
            struct buf out = { 0 };
            buf_printf(&out, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\n%s",
                       path_of(speech), types[speech], heads[i]);
            struct told told = fixture_ask_raw(f, buf_slice(&out));
            if (speech == GRPC && i == 3) { /* Its head is good HTTP, and enough to refuse it. */
                assert_int_equal(told.status, 505);
                told_deinit(&told);
                buf_deinit(&out);
                continue;
            }
            assert_int_equal(told.status, 400);
            if (speech <= STREAM)
                assert_true(told_body_has(&told, "{\"code\":\"invalid_argument\""));
            else
                assert_true(told.body.size == 0 && told_has(&told, "grpc-status: 3\r\n"));
            told_deinit(&told);
            buf_deinit(&out);
        }
    }
}

/* A head that cannot be read may say anything, but not in our answer. */
static void nothing_of_a_broken_head_is_repeated(void **state)
{
    struct fixture *f = *state;

    f->config.cors_origins = "*";
    fixture_start(f);
    struct told told = fixture_ask_raw(
        f, SLICE_LITERAL("POST / HTTP/1.1\r\nOrigin: https://a\rX-Injected: y\r\nHost: x\r\n\r\n"));
    assert_int_equal(told.status, 400);
    assert_false(told_has(&told, "Injected"));
    told_deinit(&told);
}

/* ---- verbs, types ---- */

static void other_verbs_and_types_are_for_the_client_to_read(void **state)
{
    static const struct {
        const char *verb;
        const char *path;
        const char *type;
        unsigned status;
        bool bare;
    } cases[] = {
        { "DELETE", PATH_GRANT, "application/json", 405, false },
        { "GET", PATH_GRANT "?encoding=json&message=%7B%7D&connect=v1", NULL, 405, false },
        { "PUT", PATH_ENTRIES, "application/connect+json", 405, false },
        { "DELETE", PATH_GRANT, "application/grpc-web", 405, true },
        { "DELETE", PATH_GRANT, "application/grpc", 405, true },
        { "DELETE", PATH_GRANT, "application/grpc+thrift", 405, true },
        { "POST", PATH_GRANT, "application/connect+thrift", 415, false },
        { "POST", PATH_GRANT, "application/json; charset=latin1", 415, false },
        { "POST", PATH_GRANT, "application/connect+proto", 415, false }, /* It is unary.  */
        { "POST", PATH_ENTRIES, "application/json", 415, false },        /* It streams.   */
        { "POST", PATH_GRANT, "application/grpc-web+thrift", 415, true },
        { "POST", PATH_GRANT, "application/grpc-web-text", 415, true },
        { "POST", PATH_GRANT, "application/grpc+thrift", 415, true },
    };
    struct fixture *f = *state;

    fixture_start(f);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct told told = fixture_ask(
            f, &(struct asked){ cases[i].verb, cases[i].path, cases[i].type, NULL, { 0 } });
        assert_int_equal(told.status, cases[i].status);
        assert_int_equal(told_has(&told, "allow: POST\r\n"), cases[i].status == 405);
        assert_int_equal(told_has(&told, "accept-post: application/json, "),
                         cases[i].status == 415);
        assert_int_equal(told_has(&told, "content-type: "), !cases[i].bare);
        assert_int_equal(told.body.size == 0, cases[i].bare);
        /* What clients infer from these statuses, so that all of them read the same. */
        if (!cases[i].bare)
            assert_true(told_body_has(&told, "{\"code\":\"unknown\",\"message\":"));
        told_deinit(&told);
    }
    assert_int_equal(f->requests, 0);
}

/* Who sends it may speak anything: a sentence, but no JSON, which clients of gRPC stumble over. */
static void a_foreign_type_is_told_in_plain_text(void **state)
{
    static const char *const foreign[] = { NULL, "image/jpeg", "application/thrift", "text/json",
                                           "application/x-www-form-urlencoded" };
    struct fixture *f = *state;

    fixture_start(f);
    for (size_t i = 0; i < ARRAY_SIZE(foreign); i++) {
        struct told told =
            fixture_ask(f, &(struct asked){ NULL, PATH_GRANT, foreign[i], NULL, { 0 } });
        assert_int_equal(told.status, 415);
        assert_true(told_has(&told, "accept-post: application/json, "));
        assert_true(told_has(&told, "content-type: text/plain\r\n"));
        assert_true(told_body_has(&told, "unknown Content-Type; send application/json, "));
        told_deinit(&told);
    }
}

static void an_unknown_method_is_unimplemented_in_every_protocol(void **state)
{
    struct fixture *f = *state;

    fixture_start(f);
    for (enum speech speech = UNARY; speech <= WEB; speech++) {
        struct told told = fixture_ask(
            f,
            &(struct asked){ NULL, "/holdfast.v1.LedgerService/Nope", types[speech], NULL, { 0 } });
        assert_says(&told, speech, speech == WEB ? "12" : "unimplemented", 404);
        told_deinit(&told);
    }
}

static void grpc_over_http_1_is_told_in_its_head(void **state)
{
    struct fixture *f = *state;

    fixture_start(f);
    struct told told =
        fixture_ask(f, &(struct asked){ NULL, PATH_GRANT, "application/grpc", NULL, { 0 } });
    assert_int_equal(told.status, 505);
    assert_true(told_has(&told, "grpc-status: 12\r\n"));
    assert_true(told_has(&told, "grpc-message: gRPC needs HTTP/2\r\n"));
    assert_int_equal(told.body.size, 0);
    told_deinit(&told);
}

/* ---- messages ---- */

#define ONE "\0\0\0\0\2\x0a\0"

static void a_request_has_one_message(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *headers;
        const char *connect; /* NULL: it is taken. */
        const char *grpc;
    } cases[] = {
        { "", 0, NULL, "unimplemented", "12" },
        { ONE ONE, 14, NULL, "unimplemented", "12" },
        { ONE ONE ONE, 21, NULL, "unimplemented", "12" },
        { "\0\0\0\0\0\0\0\0\0\0", 10, NULL, "unimplemented", "12" },
        { ONE "\0", 8, NULL, "invalid_argument", "3" },
        { ONE "\0\0\0\0\1", 12, NULL, "invalid_argument", "3" },
        { "\0\0\0\0", 4, NULL, "invalid_argument", "3" },
        { "\0\0\0\0\xa\1\2\3", 8, NULL, "invalid_argument", "3" },
        { "\0\xff\xff\xff\xff", 5, NULL, "resource_exhausted", "8" },
        { "\1\0\0\0\0", 5, NULL, "internal", "13" },
        { "\2\0\0\0\0", 5, NULL, "internal", "13" },
        { "\4\0\0\0\0", 5, NULL, "internal", "13" },
        { "\x80\0\0\0\0", 5, NULL, "internal", "13" },
        { "\1\0\0\0\0", 5,
          "Connect-Content-Encoding: identity\r\nGrpc-Encoding: identity\r\n"
          "Content-Encoding: identity\r\n",
          "internal", "13" },
        { "\0\0\0\0\0", 5, NULL, NULL, NULL },
        { ONE, 7, NULL, NULL, NULL },
    };
    struct fixture *f = *state;

    fixture_start(f);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct slice body = { (const uint8_t *)cases[i].bytes, cases[i].size };
        const struct asked stream = { NULL, PATH_ENTRIES, "application/connect+proto",
                                      cases[i].headers, body };
        const struct asked web = { NULL, PATH_GRANT, "application/grpc-web+proto", cases[i].headers,
                                   body };
        unsigned before = f->requests;
        char text[64];
        struct told told = fixture_ask(f, &stream);
        assert_int_equal(told.status, 200);
        snprintf(text, sizeof text, "{\"error\":{\"code\":\"%s\"",
                 cases[i].connect != NULL ? cases[i].connect : "");
        assert_int_equal(told_body_has(&told, text), cases[i].connect != NULL);
        told_deinit(&told);
        told = fixture_ask(f, &web);
        snprintf(text, sizeof text, "grpc-status: %s\r\n",
                 cases[i].grpc != NULL ? cases[i].grpc : "0");
        assert_int_equal(told.status, 200);
        assert_true(told_body_has(&told, text));
        told_deinit(&told);
        assert_int_equal(f->requests, before + (cases[i].connect == NULL ? 2 : 0));
    }
}

/* As large as the limit in every protocol, not a byte more; the envelope does not count. */
static void the_limit_is_that_of_the_message(void **state)
{
    struct fixture *f = *state;

    f->config.limits.body_bytes_max = 1000;
    fixture_start(f);
    for (unsigned over = 0; over < 8; over++) {
        struct buf message = { 0 };
        struct buf framed = { 0 };
        buf_append(&message, "\x0a\xe5\x07", 3); /* player_id, 997 bytes and more. */
        message.data[1] = (uint8_t)(message.data[1] + over);
        while (message.size < 1000 + over)
            buf_put_u8(&message, 'a');
        buf_put_u8(&framed, 0);
        buf_put_u32_be(&framed, (uint32_t)message.size);
        buf_append(&framed, message.data, message.size);
        const struct asked unary = { NULL, PATH_GRANT, "application/proto", NULL,
                                     buf_slice(&message) };
        const struct asked stream = { NULL, PATH_ENTRIES, "application/connect+proto", NULL,
                                      buf_slice(&framed) };
        const struct asked web = { NULL, PATH_GRANT, "application/grpc-web", NULL,
                                   buf_slice(&framed) };
        struct told told = fixture_ask(f, &unary);
        assert_int_equal(told.status, over == 0 ? 200 : 413);
        assert_int_equal(told_body_has(&told, "\"limit\":\"1000\""), over > 0);
        told_deinit(&told);
        told = fixture_ask(f, &stream);
        assert_int_equal(told_body_has(&told, "resource_exhausted"), over > 0);
        assert_int_equal(told_body_has(&told, "\"limit\":\"1000\""), over > 0);
        told_deinit(&told);
        told = fixture_ask(f, &web);
        assert_true(told_body_has(&told, over == 0 ? "grpc-status: 0\r\n" : "grpc-status: 8\r\n"));
        told_deinit(&told);
        assert_int_equal(f->requests, 3);
        buf_deinit(&message);
        buf_deinit(&framed);
    }
}

/* ---- headers ---- */

static void content_types_tell_their_family_and_charset(void **state)
{
    static const struct {
        const char *type;
        bool known;
        enum rpc_protocol family;
    } cases[] = {
        { "application/json", true, RPC_CONNECT },
        { "application/json;charset=UTF-8", true, RPC_CONNECT },
        { "application/json; charset=\"utf-8\"; x=y", true, RPC_CONNECT },
        { "application/json; charset=utf8", true, RPC_CONNECT },
        { "application/json; charset=utf-16", false, RPC_CONNECT },
        { "application/json; x=y; Charset=latin1", false, RPC_CONNECT },
        { "application/json; charset", false, RPC_CONNECT },
        { "application/json;", true, RPC_CONNECT },
        { "application/connect+json; charset=utf-16", false, RPC_CONNECT },
        { "application/proto; charset=utf-16", true, RPC_CONNECT },
        { "application/grpc-web;charset=utf-8", true, RPC_GRPC_WEB },
        { "Application/gRPC-web-text", false, RPC_GRPC_WEB },
        { "application/grpc;x", true, RPC_GRPC },
        { "application/grpc+x", false, RPC_GRPC },
        { "application/gzip", false, RPC_CONNECT },
        { "", false, RPC_CONNECT },
        { ";", false, RPC_CONNECT },
    };
    enum rpc_protocol protocol;
    enum rpc_form form;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct slice type = slice_from_text(cases[i].type);
        assert_int_equal(rpc_content_type_parse(type, &protocol, &form), cases[i].known);
        assert_int_equal(rpc_content_type_family(type), cases[i].family);
    }
}

/* The Connect protocol's table of codes; gRPC's numbers; our one exception. */
static void every_code_of_connect_has_its_statuses(void **state)
{
    static const struct {
        const char *name;
        unsigned http;
    } codes[] = {
        { "canceled", 499 },
        { "unknown", 500 },
        { "invalid_argument", 400 },
        { "deadline_exceeded", 504 },
        { "not_found", 404 },
        { "already_exists", 409 },
        { "permission_denied", 403 },
        { "resource_exhausted", 429 },
        { "failed_precondition", 400 },
        { "aborted", 409 },
        { "out_of_range", 400 },
        { "unimplemented", 501 },
        { "internal", 500 },
        { "unavailable", 503 },
        { "data_loss", 500 },
        { "unauthenticated", 401 },
    };
    bool seen[ARRAY_SIZE(codes)] = { false };

    (void)state;
    for (unsigned i = 0; i < holdfast__v1__error_code__descriptor.n_values; i++) {
        int code = holdfast__v1__error_code__descriptor.values[i].value;
        const struct rpc_status *status = rpc_status_get((Holdfast__V1__ErrorCode)code);
        assert_in_range(status->grpc, 1, ARRAY_SIZE(codes));
        assert_string_equal(status->connect, codes[status->grpc - 1].name);
        seen[status->grpc - 1] = true;
        if (code == HOLDFAST__V1__ERROR_CODE__ERROR_CODE_TOO_LARGE)
            assert_int_equal(status->http, 413);
        else
            assert_int_equal(status->http, codes[status->grpc - 1].http);
    }
    for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
        assert_true(seen[i]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(refusals_speak_the_callers_protocol),
        TEST(what_is_no_http_stays_400),
        TEST(nothing_of_a_broken_head_is_repeated),
        TEST(other_verbs_and_types_are_for_the_client_to_read),
        TEST(a_foreign_type_is_told_in_plain_text),
        TEST(an_unknown_method_is_unimplemented_in_every_protocol),
        TEST(the_limit_is_that_of_the_message),
        TEST(grpc_over_http_1_is_told_in_its_head),
        TEST(a_request_has_one_message),
        cmocka_unit_test(content_types_tell_their_family_and_charset),
        cmocka_unit_test(every_code_of_connect_has_its_statuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
