#include "router/io/action_log.h"

#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "idl/error_code.h"

static char said[4096];
static uint32_t lines;

static void write_line(void *context, enum log_level level, const char *event,
                       const struct log_field *fields)
{
    (void)context;
    (void)level;
    lines++;
    size_t size = (size_t)snprintf(said, sizeof said, "%s", event);
    for (; fields->key != NULL; fields++)
        size += (size_t)(fields->text != NULL ? snprintf(said + size, sizeof said - size, " %s=%s",
                                                         fields->key, fields->text)
                                              : snprintf(said + size, sizeof said - size, " %s=%u",
                                                         fields->key, (unsigned)fields->number));
}

static const struct log sink = { .write = write_line, .level_min = LOG_DEBUG };
static struct action_log actions;

static int setup(void **state)
{
    (void)state;
    actions = (struct action_log){ .log = &sink };
    lines = 0;
    said[0] = 0;
    return 0;
}

static struct request request_of(uint32_t method, const char *key)
{
    return (struct request){ .method = method_find(method), .key_id = key, .peer = "10.0.0.1:77" };
}

static void a_flood_is_one_line_a_minute_and_cause(void **state)
{
    struct request request = request_of(METHOD_GRANT, "3f09c2a7be41");
    struct request other = request_of(METHOD_GRANT, "aaaaaaaaaaaa");

    (void)state;
    for (uint64_t now_ms = 1000; now_ms < 61000; now_ms += 10)
        action_log_finished(&actions, &request, CODE(PERMISSION_DENIED), "permission_denied",
                            now_ms);
    assert_int_equal(lines, 1);
    assert_string_equal(said, "request.refused why=permission_denied key=3f09c2a7be41 "
                              "peer=10.0.0.1:77 method=holdfast.v1.LedgerService/Grant "
                              "others_since=0");
    action_log_finished(&actions, &other, CODE(PERMISSION_DENIED), "permission_denied", 60000);
    assert_int_equal(lines, 2);
    action_log_finished(&actions, &request, CODE(PERMISSION_DENIED), "permission_denied", 61001);
    assert_int_equal(lines, 3);
    assert_non_null(strstr(said, "others_since=5999"));
}

/* A backup put back is thousands of calls. */
static void a_flood_of_an_admin_s_writes_is_one_line(void **state)
{
    (void)state;
    for (uint32_t id = 1; id <= METHOD_ID_MAX; id++) {
        const struct method_info *method = method_find(id);
        struct request request;

        if (method == NULL || !method->writes || (method->scopes & SCOPE_ADMIN) == 0)
            continue;
        request = request_of(id, "3f09c2a7be41");
        request.as_admin = true;
        lines = 0;
        for (uint64_t now_ms = 1000; now_ms < 2000; now_ms++)
            action_log_finished(&actions, &request, CODE(UNSPECIFIED), "ok", now_ms);
        assert_true(lines <= 1);
    }
}

static void callers_without_a_key_are_told_apart_by_address(void **state)
{
    struct action_refusal refusal = { "unknown_key", "m", "", "10.0.0.1:1" };

    (void)state;
    action_log_refused(&actions, &refusal, 5);
    refusal.peer = "10.0.0.1:2"; /* Another connection. */
    action_log_refused(&actions, &refusal, 6);
    assert_int_equal(lines, 1);
    refusal.peer = "10.0.0.2:1";
    action_log_refused(&actions, &refusal, 7);
    assert_int_equal(lines, 2);
    assert_non_null(strstr(said, "key=none"));
}

static void many_causes_write_no_more_than_the_slots(void **state)
{
    char peer[32];
    struct action_refusal refusal = { "no_key", "m", "", peer };

    (void)state;
    for (uint32_t i = 0; i < 100000; i++) {
        snprintf(peer, sizeof peer, "10.%u.%u.1:1", i / 256, i % 256);
        action_log_refused(&actions, &refusal, 100);
        action_log_refused(&actions, &refusal, 100);
    }
    assert_true(lines <= ACTION_LOG_SLOTS);
}

static void an_operators_actions_are_told_each(void **state)
{
    struct request request = request_of(METHOD_MOVE_SHARD, "3f09c2a7be41");
    struct request read = request_of(METHOD_GET_CLUSTER, "3f09c2a7be41");
    struct request grant = request_of(METHOD_GRANT, "3f09c2a7be41");

    (void)state;
    action_log_finished(&actions, &request, CODE(UNSPECIFIED), "ok", 1);
    action_log_finished(&actions, &request, CODE(UNSPECIFIED), "ok", 1);
    assert_int_equal(lines, 2);
    assert_string_equal(said, "admin.action method=holdfast.v1.AdminService/MoveShard "
                              "key=3f09c2a7be41 peer=10.0.0.1:77 code=ok others_since=0");
    action_log_finished(&actions, &read, CODE(UNSPECIFIED), "ok", 1);
    action_log_finished(&actions, &grant, CODE(UNSPECIFIED), "ok", 1);
    assert_int_equal(lines, 2);
    grant.as_admin = true;
    action_log_finished(&actions, &grant, CODE(UNSPECIFIED), "ok", 1);
    assert_int_equal(lines, 3);
}

static void what_ended_before_there_was_a_request_is_told_by_its_code(void **state)
{
    const struct action_refusal who = { .method = "none", .key = "cert:ops", .peer = "10.0.0.1:1" };

    (void)state;
    action_log_code(&actions, &who, CODE(INVALID_ARGUMENT), 1);
    assert_string_equal(said, "request.refused why=invalid_argument key=cert:ops peer=10.0.0.1:1 "
                              "method=none others_since=0");
    action_log_code(&actions, &who, CODE(UNAVAILABLE), 1); /* Our trouble. */
    assert_int_equal(lines, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_flood_is_one_line_a_minute_and_cause, setup),
        cmocka_unit_test_setup(a_flood_of_an_admin_s_writes_is_one_line, setup),
        cmocka_unit_test_setup(callers_without_a_key_are_told_apart_by_address, setup),
        cmocka_unit_test_setup(many_causes_write_no_more_than_the_slots, setup),
        cmocka_unit_test_setup(an_operators_actions_are_told_each, setup),
        cmocka_unit_test_setup(what_ended_before_there_was_a_request_is_told_by_its_code, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
