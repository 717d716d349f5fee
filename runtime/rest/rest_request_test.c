#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/admin.pb-c.h"
#include "holdfast/v1/inventory.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/profile.pb-c.h"
#include "rest/rest_tables.h"
#include "runtime/base/check.h"
#include "runtime/codec/json_codec.h"
#include "runtime/rest/rest_request.h"

/* What the table is made of. */
static const struct rest_route routes[] = {
#define REST_ROW(verb, method, count, path, action)                                                \
    { REST_##verb, METHOD_##method, (count), (path), (action) },
    REST_ROUTES(REST_ROW)
#undef REST_ROW
};

static struct arena arena;
static struct buf out;
static struct rest_found found;
static struct rest_named named;
static struct rest_flaw flaw;

static int tear_down(void **state)
{
    (void)state;
    arena_deinit(&arena);
    arena = (struct arena){ 0 };
    buf_deinit(&out);
    return 0;
}

static err head_of(const char *verb, const char *path, const char *query, const char *if_match)
{
    struct rest_head head = { &found, slice_from_text(query), slice_from_text(if_match) };

    assert_int_equal(
        rest_route_find(slice_from_text(verb), slice_from_text(path), &arena, &found, &flaw),
        REST_FOUND);
    buf_clear(&out);
    return rest_request_head(&head, &arena, &out, &named, &flaw);
}

static void assert_head(const char *path, const char *query, const char *expected)
{
    assert_int_equal(head_of("GET", path, query, ""), ERR_OK);
    buf_put_u8(&out, 0);
    assert_string_equal((const char *)out.data, expected);
}

static void path_and_query_become_one_object(void **state)
{
    (void)state;

    assert_head("/v1/cluster", "", "{}");
    assert_head("/v1/players/ada/items", "", "{\"player_id\":\"ada\"}");
    assert_head("/v1/players/ada/items", "page_size=10&kind=sword",
                "{\"player_id\":\"ada\",\"page_size\":\"10\",\"kind\":\"sword\"}");
    assert_head("/v1/players/ada/items", "limit=10&",
                "{\"player_id\":\"ada\",\"page_size\":\"10\"}");
    assert_head("/v1/users/ada/favorites", "limit=10",
                "{\"player_id\":\"ada\",\"page_size\":\"10\"}");
    assert_head("/v1/favorites/status", "user_id=ada&game_ids=a&game_ids=b",
                "{\"player_id\":\"ada\",\"target_ids\":[\"a\",\"b\"]}");
    assert_head("/v1/players/a%22%5C%0Ab/items", "kind=%22+%2B",
                "{\"player_id\":\"a\\\"\\\\\\u000ab\",\"kind\":\"\\\" +\"}");
    assert_head("/v1/players/ada", "include=sections&settled=true&include=items",
                "{\"player_id\":\"ada\",\"include\":[\"sections\",\"items\"],\"settled\":true}");
    assert_head("/v1/players/ada", "settled=yes", "{\"player_id\":\"ada\",\"settled\":\"yes\"}");
    assert_head("/v1/players/ada", "read.stale=true&read.at_least=c1.",
                "{\"player_id\":\"ada\",\"read\":{\"stale\":true,\"at_least\":\"c1.\"}}");
    assert_head("/v1/players:read", "player_ids=a&player_ids=b", "{\"player_ids\":[\"a\",\"b\"]}");
}

static void what_no_query_may_say_is_named(void **state)
{
    static const struct {
        const char *query;
        const char *field;
    } cases[] = {
        { "page=1", "page" },
        { "pageSize=1", "pageSize" },
        { "read.stael=true", "read.stael" },
        { "read=stale", "read" },
        { "read.stale=true&read=1", "read" },
        { "read=1&read.stale=true", "read" },
        { "kind.x=1", "kind" },
        { "kind=a&kind=b", "kind" },
        { "limit=1&page_size=1", "page_size" },
        { "user_id=bob", "player_id" },
        { "game_id=g", "game_id" },
        { "player_id=bob", "player_id" },
        { "kind", "kind" },
        { "kind=%zz", "kind" },
        { "=1", "" },
        { "read.a.b.c.d=1", "read.a.b.c.d" },
        { "read.stale=true&read.stale=true", "read.stale" },
        { "read.stale.x=1", "read.stale" },
        { ".=1", "" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(head_of("GET", "/v1/players/ada/items", cases[i].query, ""), ERR_INVALID);
        assert_string_equal(flaw.field, cases[i].field);
        assert_non_null(flaw.message);
        assert_non_null(flaw.limit);
    }
    assert_int_equal(head_of("GET", "/v1/players/ada/items", "kid=a", ""), ERR_INVALID);
    assert_non_null(strstr(flaw.message, "did you mean kind?"));
    assert_int_equal(head_of("POST", "/v1/players/ada:grant", "currencies=1", ""), ERR_INVALID);
    assert_string_equal(flaw.field, "currencies");
}

static void a_query_is_bounded(void **state)
{
    struct buf query = { 0 };
    (void)state;

    for (unsigned i = 0; i < REST_PARAMETERS_MAX; i++)
        buf_printf(&query, "include=a&");
    buf_put_u8(&query, 0);
    assert_int_equal(head_of("GET", "/v1/players/ada", (const char *)query.data, ""), ERR_OK);
    query.size--;
    buf_printf(&query, "include=a");
    buf_put_u8(&query, 0);
    assert_int_equal(head_of("GET", "/v1/players/ada", (const char *)query.data, ""), ERR_INVALID);
    assert_string_equal(flaw.field, "query");
    buf_deinit(&query);
}

static void a_read_takes_no_if_match(void **state)
{
    (void)state;

    assert_int_equal(head_of("GET", "/v1/players/ada", "", "\"7\""), ERR_INVALID);
    assert_string_equal(flaw.field, "if-match");
    assert_int_equal(head_of("POST", "/v1/players:batchGrant", "", "7"), ERR_INVALID);
    assert_string_equal(flaw.field, "if-match");
}

static err if_match_of(const struct rest_route *route, const char *if_match)
{
    struct rest_head head = { &found, { 0 }, slice_from_text(if_match) };

    found = (struct rest_found){ .route = route };
    buf_clear(&out);
    return rest_request_head(&head, &arena, &out, &named, &flaw);
}

static void if_match_is_the_version_of_those_requests_that_have_one(void **state)
{
    static const char *const malformed[] = {
        "*", "W/\"7\"", "\"7\", \"8\"", "\"\"", "seven", "-1"
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
        const ProtobufCMessageDescriptor *type = method_find(routes[i].method)->request;
        if (protobuf_c_message_descriptor_get_field_by_name(type, "if_version") == NULL) {
            assert_int_equal(if_match_of(&routes[i], "\"7\""), ERR_INVALID);
            assert_string_equal(flaw.field, "if-match");
            continue;
        }
        assert_int_equal(if_match_of(&routes[i], "\"7\""), ERR_OK);
        assert_true(slice_equal(buf_slice(&out), SLICE_LITERAL("{\"if_version\":\"7\"}")));
        assert_int_equal(if_match_of(&routes[i], "0"), ERR_OK);
        for (size_t j = 0; j < ARRAY_SIZE(malformed); j++) {
            assert_int_equal(if_match_of(&routes[i], malformed[j]), ERR_INVALID);
            assert_string_equal(flaw.field, "if-match");
        }
    }
}

/* ---- with the request of the body ---- */

static struct json_codec codec;

static ProtobufCMessage *decode(const ProtobufCMessageDescriptor *type, struct slice json)
{
    struct codec_scope scope = { .arena = &arena, .form = JSON_PLAIN };
    ProtobufCMessage *message = NULL;

    assert_int_equal(json_decode(&codec, type, json, &scope, &message), ERR_OK);
    return message;
}

/* The whole request of a POST or PATCH; NULL: refused. */
static void *request_of(const char *verb, const char *path, const char *query, const char *body)
{
    assert_int_equal(head_of(verb, path, query, ""), ERR_OK);
    const ProtobufCMessageDescriptor *type = method_find(found.route->method)->request;
    ProtobufCMessage *head = decode(type, buf_slice(&out));
    ProtobufCMessage *message = decode(type, slice_from_text(body));
    return rest_request_merge(message, head, named, &flaw) == ERR_OK ? message : NULL;
}

static void what_the_head_says_joins_what_the_body_says(void **state)
{
    (void)state;

    json_codec_init(&codec);
    const Holdfast__V1__GrantRequest *grant =
        request_of("POST", "/v1/players/ada:grant", "attempt=3&reason=win",
                   "{\"opId\":\"claim:1\",\"currencies\":{\"gold\":5},\"reason\":\"win\"}");
    assert_non_null(grant);
    assert_string_equal(grant->player_id, "ada");
    assert_string_equal(grant->op_id, "claim:1");
    assert_int_equal(grant->attempt, 3);
    assert_int_equal(grant->n_currencies, 1);
    assert_non_null(request_of("POST", "/v1/players/ada:grant", "", "{\"playerId\":\"ada\"}"));
    const Holdfast__V1__RepairPlayerRequest *repair =
        request_of("POST", "/v1/players/ada/rows:repair", "rows=a&rows=b&dry_run=true", "{}");
    assert_int_equal(repair->n_rows, 2);
    assert_true(repair->dry_run);
    json_codec_deinit(&codec);
}

static void what_the_body_says_otherwise_is_refused(void **state)
{
    (void)state;

    json_codec_init(&codec);
    assert_null(request_of("POST", "/v1/players/ada:grant", "", "{\"playerId\":\"bob\"}"));
    assert_string_equal(flaw.field, "player_id");
    assert_null(request_of("POST", "/v1/players/ada:grant", "attempt=1", "{\"attempt\":2}"));
    assert_string_equal(flaw.field, "attempt");
    /* A default that the head spells out is no less a word of its own. */
    assert_null(request_of("POST", "/v1/shards/0:move", "", "{\"shard\":3}"));
    assert_string_equal(flaw.field, "shard");
    assert_null(request_of("POST", "/v1/players/ada/rows:repair", "rows=a", "{\"rows\":[\"a\"]}"));
    assert_string_equal(flaw.field, "rows");
    json_codec_deinit(&codec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(path_and_query_become_one_object, tear_down),
        cmocka_unit_test_teardown(what_no_query_may_say_is_named, tear_down),
        cmocka_unit_test_teardown(a_query_is_bounded, tear_down),
        cmocka_unit_test_teardown(a_read_takes_no_if_match, tear_down),
        cmocka_unit_test_teardown(if_match_is_the_version_of_those_requests_that_have_one,
                                  tear_down),
        cmocka_unit_test_teardown(what_the_head_says_joins_what_the_body_says, tear_down),
        cmocka_unit_test_teardown(what_the_body_says_otherwise_is_refused, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
