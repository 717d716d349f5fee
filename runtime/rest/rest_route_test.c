#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "rest/rest_tables.h"
#include "runtime/rest/rest_route.h"

/* What the table is made of. */
static const struct rest_route routes[] = {
#define REST_ROW(verb, method, count, path, action)                                                \
    { REST_##verb, METHOD_##method, (count), (path), (action) },
    REST_ROUTES(REST_ROW)
#undef REST_ROW
};
static const char *const verbs_of_routes[] = {
#define REST_ROW(verb, method, count, path, action) #verb,
    REST_ROUTES(REST_ROW)
#undef REST_ROW
};

static struct arena arena;
static struct rest_found found;
static struct rest_flaw flaw;

static int tear_down(void **state)
{
    (void)state;
    arena_deinit(&arena);
    arena = (struct arena){ 0 };
    return 0;
}

static enum rest_result find(const char *verb, const char *path)
{
    return rest_route_find(slice_from_text(verb), slice_from_text(path), &arena, &found, &flaw);
}

static void assert_found(const char *verb, const char *path, enum method_id method)
{
    assert_int_equal(find(verb, path), REST_FOUND);
    assert_int_equal(found.route->method, method);
}

static void assert_value(size_t place, const char *name, const char *text)
{
    assert_true(place < found.value_count);
    assert_true(slice_equal(found.values[place].name, slice_from_text(name)));
    assert_true(slice_equal(found.values[place].text, slice_from_text(text)));
}

/* A path of the route: "v0", "v1".. for its fields. Returns how many it has. */
static size_t make_path(const struct rest_route *route, char *ret_path, size_t size)
{
    size_t fields = 0, at = 0;

    ret_path[at++] = '/';
    for (const char *p = route->path; *p != 0; p++) {
        if (*p != '{') {
            ret_path[at++] = *p;
            continue;
        }
        at += (size_t)snprintf(ret_path + at, size - at, "v%zu", fields++);
        p = strchr(p, '}');
        assert_non_null(p);
    }
    ret_path[at] = 0;
    if (route->action[0] != 0)
        snprintf(ret_path + at, size - at, ":%s", route->action);
    return fields;
}

static void every_route_finds_its_method_and_its_fields(void **state)
{
    (void)state;

    assert_true(ARRAY_SIZE(routes) > 50);
    for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
        char path[256], value[32];
        size_t fields = make_path(&routes[i], path, sizeof path);
        const struct method_info *method = method_find(routes[i].method);
        assert_non_null(method);
        assert_false(method->internal);
        assert_true(method->route != METHOD_STREAM);
        assert_found(verbs_of_routes[i], path, routes[i].method);
        assert_int_equal(found.route->verb, routes[i].verb);
        assert_string_equal(found.route->path, routes[i].path);
        assert_string_equal(found.route->action, routes[i].action);
        assert_int_equal(found.value_count, fields);
        for (size_t j = 0; j < fields; j++) {
            snprintf(value, sizeof value, "v%zu", j);
            assert_true(slice_equal(found.values[j].text, slice_from_text(value)));
            assert_non_null(protobuf_c_message_descriptor_get_field_by_name(
                method->request, (const char *)found.values[j].name.data));
        }
    }
}

/* Those of backups are for a program, and of damage for tests. */
static bool needs_route(const struct method_info *method)
{
    return !method->internal && method->route != METHOD_STREAM &&
           strstr(method->name, ".BackupService/") == NULL &&
           strstr(method->name, ".DebugService/") == NULL;
}

static void every_method_that_a_person_would_call_has_a_route(void **state)
{
    size_t count;
    const struct method_info *all = method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        size_t place = 0;
        while (place < ARRAY_SIZE(routes) && routes[place].method != all[i].id)
            place++;
        if (needs_route(&all[i]) != (place < ARRAY_SIZE(routes)))
            fail_msg("%s: google.api.http %s", all[i].name,
                     needs_route(&all[i]) ? "is missing" : "does not belong there");
    }
}

static void a_path_under_another_verb_says_which_there_are(void **state)
{
    (void)state;

    assert_int_equal(find("DELETE", "/v1/players/ada"), REST_NO_VERB);
    assert_string_equal(found.allow, "GET, HEAD, PATCH");
    assert_found("HEAD", "/v1/players/ada/items", METHOD_LIST_ITEMS);
    assert_int_equal(find("HEAD", "/v1/players/ada:grant"), REST_NO_VERB);
    assert_int_equal(find("OPTIONS", "/v1/cluster"), REST_NO_VERB);
    assert_string_equal(found.allow, "GET, HEAD");
    assert_int_equal(find("get", "/v1/cluster"), REST_NO_VERB);
}

/* Else a GET of it would be answered with a player of that name, whom there is not. */
static void an_action_is_no_part_of_an_id(void **state)
{
    (void)state;

    assert_int_equal(find("GET", "/v1/players/ada:grant"), REST_NO_VERB);
    assert_string_equal(found.allow, "POST");
    assert_found("GET", "/v1/players/ada%3Agrant", METHOD_GET_PROFILE);
    assert_value(0, "player_id", "ada:grant");
    assert_found("POST", "/v1/players/a:b:grant", METHOD_GRANT);
    assert_value(0, "player_id", "a:b");
    assert_found("GET", "/v1/players/a:b", METHOD_GET_PROFILE);
    assert_value(0, "player_id", "a:b");
    assert_found("GET", "/v1/entities/player:ada/operations/receipt:GPA.1", METHOD_GET_OPERATION);
    assert_value(0, "entity", "player:ada");
    assert_value(1, "op_id", "receipt:GPA.1");
    assert_found("POST", "/v1/entities/player:ada/operations/receipt:1:resolve",
                 METHOD_RESOLVE_OPERATION);
    assert_value(1, "op_id", "receipt:1");
}

static void ids_are_decoded_once(void **state)
{
    (void)state;

    assert_found("GET", "/v1/players/a%2Fb%20c", METHOD_GET_PROFILE);
    assert_value(0, "player_id", "a/b c");
    assert_found("GET", "/v1/players/a%252Fb", METHOD_GET_PROFILE);
    assert_value(0, "player_id", "a%2Fb");
    assert_found("GET", "/v1/players/a+b", METHOD_GET_PROFILE);
    assert_value(0, "player_id", "a+b");
    assert_found("GET", "/v1/players/caf%c3%a9", METHOD_GET_PROFILE);
    assert_value(0, "player_id", "caf\xc3\xa9");
}

static void malformed_ids_are_refused_by_the_name_of_their_field(void **state)
{
    static const char *const paths[] = { "/v1/players/a%",      "/v1/players/a%2",
                                         "/v1/players/a%zz",    "/v1/players/..",
                                         "/v1/players/%2e%2E",  "/v1/players/./items",
                                         "/v1/players/../items" };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        assert_int_equal(find("GET", paths[i]), REST_MALFORMED);
        assert_string_equal(flaw.field, "player_id");
        assert_non_null(flaw.limit);
    }
}

static void what_is_no_path_says_what_was_meant(void **state)
{
    static const struct {
        const char *verb;
        const char *path;
        const char *meant;
    } cases[] = {
        { "GET", "/v1/player/ada/items", "/v1/players/{player_id}/items" },
        { "GET", "/v1/players/ada/item", "/v1/players/{player_id}/items" },
        { "POST", "/v1/players/ada:grnat", "/v1/players/{player_id}:grant" },
        { "POST", "/v1/player/ada:grant", "/v1/players/{player_id}:grant" },
        { "GET", "/v1/clutser", "/v1/cluster" },
        { "GET", "/v1/players//items", "" },
        { "GET", "/v1/players/", "" },
        { "GET", "/v1/a/b/c/d/e/f/g/h/i/j", "" },
        { "GET", "/v1", "" },
        { "GET", "/v1/", "" },
        { "GET", "/", "" },
        { "GET", "//", "" },
        { "POST", "/v1/players/ada:", "" },
        { "GET", "/v1/something/else", "" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(find(cases[i].verb, cases[i].path), REST_NO_PATH);
        assert_string_equal(found.meant, cases[i].meant);
    }
}

static void a_method_may_have_several_routes(void **state)
{
    (void)state;

    assert_found("PUT", "/v1/players/ada/favorites/g1", METHOD_FAVORITE);
    assert_found("POST", "/v1/favorites/g1", METHOD_FAVORITE);
    assert_value(0, "target_id", "g1");
    assert_found("DELETE", "/v1/favorites/g1", METHOD_UNFAVORITE);
    assert_found("GET", "/v1/favorites/status", METHOD_BATCH_GET_STATUS);
    assert_found("POST", "/v1/favorites/status", METHOD_FAVORITE); /* A game may be called so. */
    assert_int_equal(find("GET", "/v1/favorites/g1"), REST_NO_VERB);
    assert_string_equal(found.allow, "POST, DELETE");
}

static void users_are_players(void **state)
{
    (void)state;

    assert_found("GET", "/v1/users/ada/items", METHOD_LIST_ITEMS);
    assert_value(0, "player_id", "ada");
    assert_found("POST", "/v1/users:batchGrant", METHOD_BATCH_GRANT);
    assert_found("GET", "/v1/users/players/items", METHOD_LIST_ITEMS);
}

static void users_have_paths_of_their_own(void **state)
{
    (void)state;

    assert_found("GET", "/v1/users/players", METHOD_GET_USER);
    assert_value(0, "player_id", "players");
    assert_found("POST", "/v1/users/ada", METHOD_UPSERT_USER);
    assert_found("POST", "/v1/users:batchGet", METHOD_BATCH_GET_USERS);
    assert_found("POST", "/v1/users:batchUpsert", METHOD_BATCH_UPSERT_USERS);
    assert_found("POST", "/v1/users/ada:grant", METHOD_GRANT);
    assert_int_equal(find("DELETE", "/v1/users/ada"), REST_NO_VERB);
    assert_string_equal(found.allow, "GET, HEAD, POST");
}

static void only_paths_under_v1_are_rest(void **state)
{
    (void)state;

    assert_true(rest_path_is_rest(SLICE_LITERAL("/v1/players")));
    assert_true(rest_path_is_rest(SLICE_LITERAL("/v1")));
    assert_true(rest_path_is_rest(SLICE_LITERAL("/openapi.json")));
    assert_false(rest_path_is_rest(SLICE_LITERAL("/v12/players")));
    assert_false(rest_path_is_rest(SLICE_LITERAL("/holdfast.v1.LedgerService/Grant")));
    assert_false(rest_path_is_rest(SLICE_LITERAL("")));
}

/* Whether idl calls it a read. */
static bool is_told_read(enum method_id id)
{
    static const enum method_id reads[] = {
#define READ_ROW(method) METHOD_##method,
        REST_READS(READ_ROW)
#undef READ_ROW
    };

    for (size_t i = 0; i < ARRAY_SIZE(reads); i++) {
        if (reads[i] == id)
            return true;
    }
    return false;
}

/* Of a router's own method only its name tells. */
static bool is_named_read(const char *name)
{
    static const char *const verbs[] = { "Get",   "List", "Read", "Trace",     "Check",
                                         "Watch", "Diff", "Poll", "Subscribe", "Find" };

    name = strchr(name, '/') + 1;
    if (strncmp(name, "Batch", 5) == 0)
        name += 5;
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        if (strncmp(name, verbs[i], strlen(verbs[i])) == 0)
            return true;
    }
    return false;
}

static bool is_read(const struct method_info *method)
{
    if (method->route == METHOD_SCATTER)
        return is_read(method_find(method->element));
    if (method->writes)
        return false;
    return method->route == METHOD_READ || method->route == METHOD_SHARD ||
           method->route == METHOD_GATHER || is_named_read(method->name);
}

static void idl_calls_those_methods_reads_that_are(void **state)
{
    size_t count;
    const struct method_info *all = method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        if (all[i].internal || is_told_read(all[i].id) == is_read(&all[i]))
            continue;
        fail_msg("%s: idempotency_level %s", all[i].name,
                 is_read(&all[i]) ? "is missing" : "does not belong there");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_route_finds_its_method_and_its_fields, tear_down),
        cmocka_unit_test(every_method_that_a_person_would_call_has_a_route),
        cmocka_unit_test_teardown(a_path_under_another_verb_says_which_there_are, tear_down),
        cmocka_unit_test_teardown(an_action_is_no_part_of_an_id, tear_down),
        cmocka_unit_test_teardown(ids_are_decoded_once, tear_down),
        cmocka_unit_test_teardown(malformed_ids_are_refused_by_the_name_of_their_field, tear_down),
        cmocka_unit_test_teardown(what_is_no_path_says_what_was_meant, tear_down),
        cmocka_unit_test_teardown(a_method_may_have_several_routes, tear_down),
        cmocka_unit_test_teardown(users_are_players, tear_down),
        cmocka_unit_test_teardown(users_have_paths_of_their_own, tear_down),
        cmocka_unit_test(only_paths_under_v1_are_rest),
        cmocka_unit_test(idl_calls_those_methods_reads_that_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
