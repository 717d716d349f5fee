/* GetSettings over a table of the test's making. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/definition.pb-c.h"
#include "idl/error_code.h"
#include "idl/method_errors.h"
#include "router/rpc/fake/plain_router.h"
#include "runtime/base/check.h"
#include "runtime/loop/loop.h"

#define ASKS      8u
#define IN_FLIGHT 16u /* A quarter of it may wait. */

struct one {
    struct plain_ask ask;
    char message[160];
    uint32_t retry_after_ms;
    uint64_t version, number;
    int64_t updated_at_ms;
    bool unchanged;
    char json[64];
};

struct fixture {
    struct plain_router plain;
    struct settings_table table;
    struct one ones[ASKS];
    uint32_t cancel; /* When an answer comes, that call's caller goes, too; 0: none. */
    bool welcome;
};

static struct fixture *fixture_now;

static void cancel_another(struct fixture *f)
{
    uint32_t place = f->cancel;

    f->cancel = 0;
    if (place > 0 && f->ones[place].ask.answers == 0)
        router_cancel(&f->plain.router, &f->ones[place].ask.request);
}

static void reply(struct request *request, const ProtobufCMessage *message)
{
    const Holdfast__V1__GetSettingsResponse *response = (const void *)message;
    struct one *one = request->origin;

    assert_string_equal(response->name, "match");
    one->ask.answers++;
    one->version = response->version;
    one->number = response->number;
    one->updated_at_ms = response->updated_at_ms;
    one->unchanged = response->unchanged;
    snprintf(one->json, sizeof one->json, "%s", response->json);
    cancel_another(fixture_now);
}

static void fail_one(struct request *request, const Holdfast__V1__ErrorDetail *detail)
{
    struct one *one = request->origin;

    if (!error_is_given(request->method->id, detail->code, false))
        fail_msg("idl/method_errors.h has no %d for it", (int)detail->code);
    snprintf(one->message, sizeof one->message, "%s", detail->message);
    one->retry_after_ms = detail->retry_after_ms;
    plain_ask_fail(request, detail);
}

static bool is_welcome(const struct request *request)
{
    (void)request;
    return fixture_now->welcome;
}

static const struct request_door door = { .reply = reply,
                                          .fail = fail_one,
                                          .is_welcome = is_welcome };

static int setup(void **state)
{
    static const struct log silent = { .level_min = LOG_ERROR + 1 };
    struct fixture *f = mem_zalloc(sizeof *f);

    plain_router_init(&f->plain, 1,
                      &(struct router_options){
                          .log = &silent, .in_flight_max = IN_FLIGHT, .settings = &f->table });
    f->plain.door = &door;
    f->welcome = true;
    fixture_now = f;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    plain_router_deinit(&f->plain);
    settings_table_deinit(&f->table);
    free(f);
    return 0;
}

/* `json` NULL: it is deleted. */
static void define(struct fixture *f, uint64_t number, uint64_t version, const char *json)
{
    Holdfast__Internal__V1__DefinitionVersion record =
        HOLDFAST__INTERNAL__V1__DEFINITION_VERSION__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__SettingsBody settings = HOLDFAST__V1__SETTINGS_BODY__INIT;
    const struct settings *changed;
    uint8_t bytes[256];

    settings.json = text_lend(json != NULL ? json : "{}");
    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_SETTINGS;
    body.settings = &settings;
    record.number = number;
    record.version = version;
    record.name = text_lend("match");
    record.deleted = json == NULL;
    record.body = &body;
    record.at_ms = (int64_t)(100 * version);
    size_t size = holdfast__internal__v1__definition_version__pack(&record, bytes);
    assert_int_equal(settings_table_take(&f->table, (struct slice){ bytes, size }, &changed),
                     ERR_OK);
    assert_non_null(changed);
    if (f->table.complete)
        router_settings_changed(&f->plain.router, changed->name);
}

static struct one *ask_as(struct fixture *f, uint32_t place,
                          const Holdfast__V1__GetSettingsRequest *request)
{
    plain_router_send(&f->plain, &f->ones[place].ask, METHOD_GET_SETTINGS, &request->base, 5000);
    return &f->ones[place];
}

static struct one *ask(struct fixture *f, uint32_t place, const char *name, uint64_t above,
                       uint32_t wait_ms)
{
    Holdfast__V1__GetSettingsRequest request = HOLDFAST__V1__GET_SETTINGS_REQUEST__INIT;

    request.name = text_lend(name);
    request.if_version_above = above;
    request.wait_ms = wait_ms;
    return ask_as(f, place, &request);
}

static bool is_answered(void *user)
{
    return ((const struct one *)user)->ask.answers > 0;
}

static void assert_told(const struct one *one, uint64_t version, const char *json)
{
    assert_int_equal(one->ask.answers, 1);
    assert_int_equal(one->ask.code, CODE(UNSPECIFIED));
    assert_int_equal(one->version, version);
    assert_int_equal(one->updated_at_ms, 100 * version);
    assert_int_equal(one->unchanged, json == NULL);
    assert_string_equal(one->json, json != NULL ? json : "");
}

static void assert_failed(const struct one *one, Holdfast__V1__ErrorCode code)
{
    assert_int_equal(one->ask.answers, 1);
    assert_int_equal(one->ask.code, code);
}

static void nothing_is_not_found_before_all_is_known(void **state)
{
    struct fixture *f = *state;

    define(f, 7, 1, "{\"a\":1}");
    assert_failed(ask(f, 0, "match", 0, 0), CODE(UNAVAILABLE));
    assert_failed(ask(f, 0, "shop", 0, 1000), CODE(UNAVAILABLE));
    assert_true(f->ones[0].retry_after_ms > 0);
    f->table.complete = true;
    assert_told(ask(f, 0, "match", 0, 0), 1, "{\"a\":1}");
    assert_failed(ask(f, 0, "shop", 0, 1000), CODE(NOT_FOUND));
    assert_failed(ask(f, 0, "matsh", 0, 0), CODE(NOT_FOUND));
    assert_non_null(strstr(f->ones[0].message, "did you mean match?"));
}

static void a_version_that_is_known_is_not_told_again(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GetSettingsRequest request = HOLDFAST__V1__GET_SETTINGS_REQUEST__INIT;

    f->table.complete = true;
    define(f, 7, 3, "{\"a\":3}");
    assert_told(ask(f, 0, "match", 2, 0), 3, "{\"a\":3}");
    assert_told(ask(f, 0, "match", 3, 0), 3, NULL);
    assert_told(ask(f, 0, "match", 9, 0), 3, NULL);
    assert_told(ask(f, 0, "match", 0, 1000), 3, "{\"a\":3}");
    define(f, 7, 4, NULL);
    assert_failed(ask(f, 0, "match", 3, 0), CODE(NOT_FOUND));
    define(f, 9, 1, "{\"b\":1}");
    request.name = text_lend("match");
    request.if_version_above = 3;
    request.if_number = 7;
    request.wait_ms = 1000;
    assert_told(ask_as(f, 0, &request), 1, "{\"b\":1}");
    assert_int_equal(f->ones[0].number, 9);
}

static void a_call_waits_for_a_later_version(void **state)
{
    struct fixture *f = *state;
    struct one *first, *second, *third;

    f->table.complete = true;
    define(f, 7, 3, "{\"a\":3}");
    first = ask(f, 0, "match", 3, 4000);
    second = ask(f, 1, "match", 4, 4000);
    third = ask(f, 2, "match", 3, 20);
    assert_int_equal(first->ask.answers + second->ask.answers, 0);
    assert_true(loop_run_until(f->plain.loop, is_answered, third, 2000));
    assert_told(third, 3, NULL);
    router_settings_changed(&f->plain.router, "shop");
    assert_int_equal(first->ask.answers, 0);
    define(f, 7, 4, "{\"a\":4}");
    assert_told(first, 4, "{\"a\":4}");
    assert_int_equal(second->ask.answers, 0);
    define(f, 7, 5, NULL);
    assert_failed(second, CODE(NOT_FOUND));
}

static void the_deadline_of_the_call_ends_the_wait(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GetSettingsRequest request = HOLDFAST__V1__GET_SETTINGS_REQUEST__INIT;

    f->table.complete = true;
    define(f, 7, 1, "{\"a\":1}");
    request.name = text_lend("match");
    request.if_version_above = 1;
    request.wait_ms = 30000;
    plain_router_send(&f->plain, &f->ones[0].ask, METHOD_GET_SETTINGS, &request.base, 100);
    assert_true(loop_run_until(f->plain.loop, is_answered, &f->ones[0], 2000));
    assert_told(&f->ones[0], 1, NULL);
}

static void callers_may_go_while_others_are_answered(void **state)
{
    struct fixture *f = *state;

    f->table.complete = true;
    define(f, 7, 1, "{\"a\":1}");
    for (uint32_t i = 0; i < 4; i++)
        (void)ask(f, i, "match", 1, 4000);
    router_cancel(&f->plain.router, &f->ones[0].ask.request);
    assert_failed(&f->ones[0], CODE(CANCELED));
    f->cancel = 2; /* Which is looked at next. */
    define(f, 7, 2, "{\"a\":2}");
    assert_told(&f->ones[3], 2, "{\"a\":2}");
    assert_failed(&f->ones[2], CODE(CANCELED));
    assert_told(&f->ones[1], 2, "{\"a\":2}");
    assert_int_equal(router_in_flight(&f->plain.router), 0);
}

static void few_calls_may_wait(void **state)
{
    struct fixture *f = *state;

    f->table.complete = true;
    define(f, 7, 1, "{\"a\":1}");
    for (uint32_t i = 0; i < IN_FLIGHT / 4; i++)
        assert_int_equal(ask(f, i, "match", 1, 4000)->ask.answers, 0);
    assert_failed(ask(f, 5, "match", 1, 4000), CODE(THROTTLED));
    assert_true(f->ones[5].retry_after_ms > 0);
    assert_told(ask(f, 5, "match", 1, 0), 1, NULL);
}

static void a_router_that_stops_answers_those_that_wait(void **state)
{
    struct fixture *f = *state;

    f->table.complete = true;
    define(f, 7, 1, "{\"a\":1}");
    (void)ask(f, 0, "match", 1, 4000);
    router_end_streams(&f->plain.router);
    assert_told(&f->ones[0], 1, NULL);
    assert_told(ask(f, 1, "match", 1, 4000), 1, NULL);
}

static void a_key_that_is_revoked_meanwhile_learns_nothing(void **state)
{
    struct fixture *f = *state;

    f->table.complete = true;
    define(f, 7, 1, "{\"a\":1}");
    (void)ask(f, 0, "match", 1, 4000);
    f->welcome = false;
    define(f, 7, 2, "{\"a\":2}");
    assert_failed(&f->ones[0], CODE(UNAUTHENTICATED));
}

static void what_is_asked_has_bounds(void **state)
{
    struct fixture *f = *state;

    f->table.complete = true;
    assert_failed(ask(f, 0, "", 0, 0), CODE(INVALID_ARGUMENT));
    assert_failed(ask(f, 0, "Match", 0, 0), CODE(INVALID_ARGUMENT));
    assert_failed(ask(f, 0, "match", 0, 30001), CODE(INVALID_ARGUMENT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_not_found_before_all_is_known, setup, teardown),
        cmocka_unit_test_setup_teardown(a_version_that_is_known_is_not_told_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_waits_for_a_later_version, setup, teardown),
        cmocka_unit_test_setup_teardown(the_deadline_of_the_call_ends_the_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(callers_may_go_while_others_are_answered, setup, teardown),
        cmocka_unit_test_setup_teardown(few_calls_may_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(a_router_that_stops_answers_those_that_wait, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_key_that_is_revoked_meanwhile_learns_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_asked_has_bounds, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
