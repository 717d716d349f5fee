/* REST as a caller with no library sees it: verbs, paths, statuses and headers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/inventory.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "idl/error_code.h"
#include "runtime/base/check.h"
#include "runtime/rpc/http_fixture.h"
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

static struct told ask(struct fixture *f, const char *verb, const char *path, const char *body)
{
    struct asked asked = { .verb = verb, .path = path, .body = slice_from_text(body) };

    if (body[0] != 0)
        asked.type = "application/json";
    return fixture_ask(f, &asked);
}

/* That the answer is an error of this status, with these texts in head and body. */
static void assert_refused(struct told *told, unsigned status, const char *line, const char *text)
{
    bool good = told->status == status && told_has(told, "content-type: application/json\r\n") &&
                told_has(told, "cache-control: no-store\r\n") &&
                told_has(told, "holdfast-error: ") && told_has(told, "holdfast-action: ") &&
                told_has(told, line) && told_body_has(told, "\"error\":{") &&
                told_body_has(told, text);

    if (!good)
        fail_msg("wanted %u %s %s, got %u: %s %.*s", status, line, text, told->status, told->head,
                 (int)told->body.size, (const char *)told->body.data);
    told_deinit(told);
}

static const struct {
    const char *verb;
    const char *path;
    const char *body;
    unsigned status;
    const char *line;
    const char *text;
} refusals[] = {
    { "GET", "/v1/nothing/at/all", "", 404, "\r\n", "\"field\":\":path\"" },
    { "GET", "/v1/clutser", "", 404, "\r\n", "did you mean /v1/cluster?" },
    { "GET", "/v1", "", 404, "\r\n", "no such path" },
    { "DELETE", "/v1/players/ada", "", 405, "allow: GET, HEAD, PATCH\r\n",
      "\"field\":\":method\"" },
    { "OPTIONS", "/v1/cluster", "", 405, "allow: GET, HEAD\r\n", "\"limit\":\"GET, HEAD\"" },
    { "GET", "/v1/players/ada:grant", "", 405, "allow: POST\r\n", "\"value\":\"GET\"" },
    { "GET", "/v1/players/%zz", "", 400, "\r\n", "\"field\":\"player_id\"" },
    { "GET", "/v1/players/../items", "", 400, "\r\n", "\"field\":\"player_id\"" },
    { "GET", "/v1/players/ada/items?pagesize=3", "", 400, "\r\n", "did you mean page_size?" },
    { "GET", "/v1/players/ada/items?page_size=many", "", 400, "\r\n", "\"field\":\"page_size\"" },
    { "GET", "/v1/players/ada/items?limit=-1", "", 400, "\r\n", "\"field\":\"page_size\"" },
    { "GET", "/v1/players/ada?settled=yes", "", 400, "\r\n", "\"field\":\"settled\"" },
    { "GET", "/v1/players/ada/entries?kinds=grnat", "", 400, "\r\n", "did you mean grant?" },
    { "GET", "/v1/players/ada%00", "", 400, "\r\n", "U+0000" },
    { "GET", "/v1/players/ada%ff", "", 400, "\r\n", "\"field\":\"player_id\"" },
    { "GET", "/v1/players/ada", "{}", 400, "\r\n", "\"field\":\"body\"" },
    { "DELETE", "/v1/favorites/g1", "{}", 400, "\r\n",
      "body: this verb takes no body; its fields are the query's" },
    { "GET", "/v1/favorites/g1", "", 405, "allow: POST, DELETE\r\n", "\"field\":\":method\"" },
    { "POST", "/v1/players/ada:grant", "{\"playerId\":\"bob\"}", 400, "\r\n",
      "\"field\":\"player_id\"" },
    { "POST", "/v1/players/ada:grant", "{\"plyerId\":\"bob\"}", 400, "\r\n",
      "did you mean playerId?" },
    { "POST", "/v1/players/ada:grant", "{", 400, "\r\n", "\"outcome\":\"not_applied\"" },
};

static void what_is_wrong_is_said_in_plain_json(void **state)
{
    struct fixture *f = *state;

    fixture_start(f);
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        struct told told = ask(f, refusals[i].verb, refusals[i].path, refusals[i].body);
        assert_refused(&told, refusals[i].status, refusals[i].line, refusals[i].text);
    }
    assert_int_equal(f->requests, 0);
}

static void a_head_request_is_a_get_without_the_body(void **state)
{
    struct fixture *f = *state;

    fixture_start(f);
    struct told told = ask(f, "HEAD", "/v1/players/ada/balances", "");
    assert_int_equal(told.status, 200);
    assert_true(told_has(&told, "etag: \"3\"\r\n"));
    assert_int_equal(told.body.size, 0);
    assert_int_equal(f->requests, 1);
    told_deinit(&told);
    told = ask(f, "HEAD", "/v1/players/ada:grant", "");
    assert_int_equal(told.status, 405);
    assert_true(told_has(&told, "allow: POST\r\n"));
    assert_int_equal(told.body.size, 0);
    told_deinit(&told);
}

/* Fetch, "CORS protocol": a preflight brings no key, and is answered for the path's own verbs. */
static void a_page_of_an_allowed_origin_may_use_the_verbs_of_a_path(void **state)
{
    struct fixture *f = *state;
    struct asked asked = { .verb = "OPTIONS",
                           .path = "/v1/favorites/g1",
                           .headers = "Origin: https://games.example\r\n"
                                      "Access-Control-Request-Method: POST\r\n" };

    f->config.cors_origins = "https://games.example";
    fixture_start(f);
    struct told told = fixture_ask(f, &asked);
    assert_int_equal(told.status, 204);
    assert_true(told_has(&told, "access-control-allow-origin: https://games.example\r\n"));
    assert_true(told_has(&told, "access-control-allow-methods: POST, DELETE\r\n"));
    assert_true(told_has(&told, "idempotency-key, if-match, if-none-match"));
    assert_true(told_has(&told, "vary: Origin\r\n"));
    assert_false(told_has(&told, "access-control-allow-credentials"));
    told_deinit(&told);
    asked.headers = "Origin: https://other.example\r\n";
    told = fixture_ask(f, &asked);
    assert_int_equal(told.status, 204);
    assert_false(told_has(&told, "access-control-allow-origin"));
    assert_false(told_has(&told, "access-control-allow-methods"));
    told_deinit(&told);
    asked.path = "/v1/nothing";
    told = fixture_ask(f, &asked);
    assert_int_equal(told.status, 404);
    told_deinit(&told);
    assert_int_equal(f->requests, 0);
    asked.verb = "GET";
    asked.path = "/v1/players/ada/balances";
    asked.headers = "Origin: https://games.example\r\n";
    told = fixture_ask(f, &asked);
    assert_int_equal(told.status, 200);
    assert_true(told_has(&told, "access-control-allow-origin: https://games.example\r\n"));
    assert_true(told_has(&told, "access-control-expose-headers: "));
    assert_false(told_has(&told, "access-control-allow-credentials"));
    told_deinit(&told);
}

/* Of counts alone, for the caller alone, and not of what was to be fresh. */
static void an_answer_is_kept_where_idl_says_so(void **state)
{
    static const struct {
        const char *path;
        const char *line;
    } cases[] = {
        { "/v1/games/g1/favorites/count", "cache-control: private, max-age=2\r\n" },
        { "/v1/games/g1/favorites/count?fresh=true", "cache-control: no-store\r\n" },
        { "/v1/favorites/counts?game_ids=a&game_ids=b", "cache-control: private, max-age=2\r\n" },
        { "/v1/users/ada/balances", "cache-control: no-store\r\n" },
    };
    struct fixture *f = *state;

    fixture_start(f);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct told told = ask(f, "GET", cases[i].path, "");
        assert_int_equal(told.status, 200);
        assert_true(told_has(&told, cases[i].line));
        told_deinit(&told);
    }
    struct told told = ask(f, "POST", "/v1/favorites:batchGetCounts", "{}");
    assert_true(told_has(&told, "cache-control: no-store\r\n"));
    told_deinit(&told);
}

static void a_body_has_to_be_json(void **state)
{
    struct fixture *f = *state;
    struct asked asked = { .path = "/v1/players/ada:grant",
                           .body = SLICE_LITERAL("currencies=gold") };

    fixture_start(f);
    static const char *const types[] = { NULL, "application/x-www-form-urlencoded",
                                         "application/proto", "application/grpc",
                                         "application/json; charset=latin1" };
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        asked.type = types[i];
        struct told told = fixture_ask(f, &asked);
        assert_refused(&told, 415, "accept: application/json\r\n", "\"field\":\"content-type\"");
    }
    assert_int_equal(f->requests, 0);
}

static void a_broken_head_is_answered_in_plain_json(void **state)
{
    struct fixture *f = *state;

    f->config.limits.body_bytes_max = 100;
    fixture_start(f);
    struct told told = fixture_ask_raw(
        f, SLICE_LITERAL("POST /v1/players/ada:grant HTTP/1.1\r\nHost: x\r\nContent-Length: "
                         "99999\r\n\r\n"));
    assert_refused(&told, 413, "connection: close\r\n", "\"field\":\"body\"");
}

/* ---- what reaches a handler ---- */

static struct rpc_request *kept_after(struct fixture *f, struct client *client, const char *text)
{
    unsigned before = f->requests;

    client_send_text(client, text);
    CHECK(fixture_await(f, &f->requests, before + 1));
    return f->kept[f->kept_count - 1];
}

static void path_query_and_headers_reach_the_handler(void **state)
{
    struct fixture *f = *state;

    f->keep = true;
    fixture_start(f);
    struct client client = client_connect(f);
    struct rpc_request *request =
        kept_after(f, &client,
                   "GET /v1/users/a%2Fb/items?kind=sw%20ord&limit=20&read.stale=true HTTP/1.1\r\n"
                   "Host: x\r\nAuthorization: Bearer k\r\nConnect-Timeout-Ms: 1000\r\n\r\n");
    const Holdfast__V1__ListItemsRequest *list = (const void *)request->message;
    assert_int_equal(request->method->id, METHOD_LIST_ITEMS);
    assert_string_equal(list->player_id, "a/b");
    assert_string_equal(list->kind, "sw ord");
    assert_int_equal(list->page_size, 20);
    assert_true(list->read->stale);
    assert_true(slice_equal(request->api_key, SLICE_LITERAL("k")));
    assert_true(request->deadline_ms <= loop_now_ms(f->config.loop) + 1000);
    fixture_fail(request, CODE(NOT_FOUND), "x");
    f->kept_count = 0;
    assert_true(client_await(f, &client, "HTTP/1.1 404", 1));
    request = kept_after(f, &client,
                         "POST /v1/players/ada:grant?reason=win HTTP/1.1\r\nHost: x\r\n"
                         "Content-Type: application/json\r\nIdempotency-Key: k1\r\n"
                         "Holdfast-Authority: unheld\r\nContent-Length: 25\r\n\r\n"
                         "{\"currencies\":{\"gold\":5}}");
    const Holdfast__V1__GrantRequest *grant = (const void *)request->message;
    assert_string_equal(grant->player_id, "ada");
    assert_string_equal(grant->reason, "win");
    assert_int_equal(grant->n_currencies, 1);
    assert_true(slice_equal(request->idempotency_key, SLICE_LITERAL("k1")));
    assert_true(slice_equal(request->authority, SLICE_LITERAL("unheld")));
    Holdfast__V1__WriteInfo write = HOLDFAST__V1__WRITE_INFO__INIT;
    Holdfast__V1__GrantResponse response = HOLDFAST__V1__GRANT_RESPONSE__INIT;
    write.version = 12;
    response.write = &write;
    rpc_reply(request, &response.base);
    f->kept_count = 0;
    assert_true(client_await(f, &client, "etag: \"12\"\r\n", 1));
    assert_true(client_await(f, &client, "cache-control: no-store\r\n", 2));
    client_close(&client);
}

static const struct {
    Holdfast__V1__ErrorCode code;
    const char *status;
    const char *line;
} statuses[] = {
    { CODE(INSUFFICIENT_FUNDS), "HTTP/1.1 409", "holdfast-error: insufficient_funds\r\n" },
    { CODE(VERSION_CONFLICT), "HTTP/1.1 409", "holdfast-action: " },
    { CODE(SESSION_LOST), "HTTP/1.1 409", "holdfast-action: stop_writing\r\n" },
    { CODE(INVALID_ARGUMENT), "HTTP/1.1 400", "holdfast-action: fix\r\n" },
    { CODE(OUT_OF_RANGE), "HTTP/1.1 400", "holdfast-error: " },
    { CODE(THROTTLED), "HTTP/1.1 429", "retry-after: " },
    { CODE(UNAVAILABLE), "HTTP/1.1 503", "retry-after: " },
    { CODE(OUTCOME_UNKNOWN), "HTTP/1.1 500", "holdfast-action: retry_same\r\n" },
    { CODE(PERMISSION_DENIED), "HTTP/1.1 403", "holdfast-error: permission_denied\r\n" },
};

static void an_error_has_the_status_of_rest(void **state)
{
    struct fixture *f = *state;

    f->keep = true;
    fixture_start(f);
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
        struct client client = client_connect(f);
        struct rpc_request *request =
            kept_after(f, &client, "GET /v1/players/ada HTTP/1.1\r\nHost: x\r\n\r\n");
        fixture_fail(request, statuses[i].code, "x");
        f->kept_count = 0;
        assert_true(client_await(f, &client, statuses[i].status, 1));
        assert_true(client_await(f, &client, statuses[i].line, 1));
        client_close(&client);
    }
}

static void a_stale_if_match_is_412(void **state)
{
    (void)state;

    assert_int_equal(rpc_status_rest(CODE(VERSION_CONFLICT), true), 412);
    assert_int_equal(rpc_status_rest(CODE(VERSION_CONFLICT), false), 409);
    assert_int_equal(rpc_status_rest(CODE(SESSION_LOST), true), 409);
    assert_int_equal(rpc_status_rest(CODE(NOT_FOUND), true), 404);
}

static void if_match_belongs_to_a_version(void **state)
{
    struct fixture *f = *state;
    struct asked asked = { .verb = "GET",
                           .path = "/v1/players/ada",
                           .headers = "If-Match: \"7\"\r\n" };

    fixture_start(f);
    struct told told = fixture_ask(f, &asked);
    assert_refused(&told, 400, "\r\n", "\"field\":\"if-match\"");
    asked.headers = "If-Match: \"7\"\r\nIf-Match: \"8\"\r\n";
    told = fixture_ask(f, &asked);
    assert_refused(&told, 400, "\r\n", "\"field\":\"if-match\"");
}

/* GetBalances is version 3 in these; ListEntries has a token alone. */
static void answer_read(struct fixture *f, bool balances)
{
    Holdfast__V1__GetBalancesResponse read = HOLDFAST__V1__GET_BALANCES_RESPONSE__INIT;
    Holdfast__V1__ListEntriesResponse list = HOLDFAST__V1__LIST_ENTRIES_RESPONSE__INIT;
    struct rpc_request *request = f->kept[f->kept_count - 1];

    read.version = 3;
    list.as_of = (char *)"c1.abc";
    f->kept_count = 0;
    rpc_reply(request, balances ? &read.base : &list.base);
}

static void a_read_that_the_caller_has_is_304_without_a_body(void **state)
{
    static const struct {
        const char *path, *header, *status, *tag;
    } cases[] = {
        { "balances", "\"3\"", "304", "\"3\"" },
        { "balances", "W/\"3\"", "304", "\"3\"" },
        { "balances", "\"1\", \"3\"", "304", "\"3\"" },
        { "balances", "*", "304", "\"3\"" },
        { "balances", "\"4\"", "200", "\"3\"" },
        { "entries", "W/\"c1.abc\"", "304", "W/\"c1.abc\"" },
        { "entries", "\"3\"", "200", "W/\"c1.abc\"" },
    };
    struct fixture *f = *state;
    char head[200], wanted[80];

    f->keep = true;
    fixture_start(f);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct client client = client_connect(f);
        bool known = strcmp(cases[i].status, "304") == 0;
        /* Twice on one connection: what stands behind the first head is the second one. */
        for (unsigned turn = 1; turn <= 2; turn++) {
            snprintf(head, sizeof head,
                     "GET /v1/players/ada/%s HTTP/1.1\r\nHost: x\r\nIf-None-Match: %s\r\n\r\n",
                     cases[i].path, cases[i].header);
            (void)kept_after(f, &client, head);
            answer_read(f, strcmp(cases[i].path, "balances") == 0);
            snprintf(wanted, sizeof wanted, "HTTP/1.1 %s", cases[i].status);
            assert_true(client_await(f, &client, wanted, turn));
            snprintf(wanted, sizeof wanted, "etag: %s\r\n", cases[i].tag);
            assert_true(client_await(f, &client, wanted, turn));
            assert_true(client_await(f, &client, "cache-control: no-store\r\n", turn));
        }
        const char *text = client_text(&client);
        assert_int_equal(strstr(text, "{\"") == NULL, known);
        assert_int_equal(strstr(text, "content-length") == NULL, known);
        assert_int_equal(strstr(text, "content-type") == NULL, known);
        client_close(&client);
    }
}

static void an_error_is_told_whatever_the_caller_has(void **state)
{
    struct fixture *f = *state;

    f->keep = true;
    fixture_start(f);
    struct client client = client_connect(f);
    struct rpc_request *request = kept_after(
        f, &client, "GET /v1/players/ada HTTP/1.1\r\nHost: x\r\nIf-None-Match: *\r\n\r\n");
    fixture_fail(request, CODE(UNAVAILABLE), "x");
    f->kept_count = 0;
    assert_true(client_await(f, &client, "HTTP/1.1 503", 1));
    client_close(&client);
}

static void if_none_match_belongs_to_a_read(void **state)
{
    struct fixture *f = *state;
    struct asked asked = { .verb = "GET",
                           .path = "/v1/players/ada",
                           .headers = "If-None-Match: 7\r\n" };

    fixture_start(f);
    struct told told = fixture_ask(f, &asked);
    assert_refused(&told, 400, "\r\n", "\"field\":\"if-none-match\"");
    asked.headers = "If-None-Match: \"7\"\r\n";
    asked.verb = "DELETE";
    asked.path = "/v1/servers/x";
    told = fixture_ask(f, &asked);
    assert_refused(&told, 400, "\r\n", "only a GET takes If-None-Match");
    asked.verb = "POST";
    asked.path = "/v1/players/ada:grant";
    told = fixture_ask(f, &asked);
    assert_refused(&told, 400, "\r\n", "\"field\":\"if-none-match\"");
}

static void the_document_needs_no_key(void **state)
{
    struct fixture *f = *state;
    struct asked asked = { .verb = "GET", .path = "/openapi.json" };

    fixture_start(f);
    struct told told = fixture_ask(f, &asked);
    assert_int_equal(told.status, 200);
    assert_true(told_has(&told, "content-type: application/json\r\n"));
    assert_true(told_body_has(&told, "{\"openapi\":\"3.1.0\""));
    assert_true(told_body_has(&told, "\"/v1/players/{player_id}:grant\""));
    size_t plain = told.body.size;
    told_deinit(&told);
    asked.headers = "Accept-Encoding: gzip\r\n";
    told = fixture_ask(f, &asked);
    assert_true(told_has(&told, "content-encoding: gzip\r\n"));
    assert_true(told.body.size < plain / 4);
    told_deinit(&told);
    told = ask(f, "POST", "/openapi.json", "{}");
    assert_refused(&told, 405, "allow: GET, HEAD\r\n", "\"field\":\":method\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_wrong_is_said_in_plain_json, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_head_request_is_a_get_without_the_body, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_page_of_an_allowed_origin_may_use_the_verbs_of_a_path,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_answer_is_kept_where_idl_says_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_body_has_to_be_json, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_broken_head_is_answered_in_plain_json, set_up, tear_down),
        cmocka_unit_test_setup_teardown(path_query_and_headers_reach_the_handler, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_error_has_the_status_of_rest, set_up, tear_down),
        cmocka_unit_test(a_stale_if_match_is_412),
        cmocka_unit_test_setup_teardown(if_match_belongs_to_a_version, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_read_that_the_caller_has_is_304_without_a_body, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_error_is_told_whatever_the_caller_has, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(if_none_match_belongs_to_a_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_document_needs_no_key, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
