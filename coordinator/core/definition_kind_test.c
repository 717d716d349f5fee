/* What the bodies of definitions may say. */
#include "coordinator/core/definition_kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* As it is stored; NULL: refused. */
static const char *settings_of(const char *json, struct definition_fault *ret_fault)
{
    static char text[512];
    Holdfast__V1__SettingsBody settings = HOLDFAST__V1__SETTINGS_BODY__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;

    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_SETTINGS;
    body.settings = &settings;
    snprintf(text, sizeof text, "%s", json);
    if (json[0] != 0)
        settings.json = text;
    return definition_body_check(&body, "match", ret_fault) ? settings.json : NULL;
}

static void settings_are_one_json_object(void **state)
{
    static const char *const bad[] = { "",
                                       " ",
                                       "7",
                                       "[]",
                                       "null",
                                       "\"{}\"",
                                       "{\"a\":}",
                                       "{} {}",
                                       "{}x",
                                       "{'a':1}",
                                       "{\"a\":1,\"a\":2}",
                                       "{\"a\":\"\\u0000\"}",
                                       "{\"a\":1e999}" };
    struct definition_fault fault = { 0 };

    (void)state;
    assert_string_equal(settings_of("{}", &fault), "{}");
    assert_string_equal(settings_of(" \n{ \"b\": 1.50, \"a\": [\" \"] }\t", &fault),
                        "{ \"b\": 1.50, \"a\": [\" \"] }");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (settings_of(bad[i], &fault) != NULL)
            fail_msg("taken: %s", bad[i]);
        assert_string_equal(fault.field, "body.settings.json");
    }
}

static void settings_are_nested_64_deep_at_most(void **state)
{
    struct definition_fault fault = { 0 };
    char text[256] = "{\"a\":";

    (void)state;
    memset(text + 5, '[', 64);
    memset(text + 5 + 64, ']', 64);
    text[5 + 128] = '}';
    assert_null(settings_of(text, &fault));
    assert_string_equal(fault.limit, "nested at most 64 deep");
    text[5 + 63] = ' ';
    text[5 + 64] = ' ';
    assert_non_null(settings_of(text, &fault));
}

static void a_number_without_a_sign_is_told_without_one(void **state)
{
    Holdfast__V1__RateRuleBody rule = HOLDFAST__V1__RATE_RULE_BODY__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    struct definition_fault fault = { 0 };

    (void)state;
    rule.subject = (char *)"favorites";
    rule.account_age_ms = UINT64_MAX;
    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_RATE_RULE;
    body.rate_rule = &rule;
    assert_false(definition_body_check(&body, "slow", &fault));
    assert_string_equal(fault.field, "body.rate_rule.account_age_ms");
    assert_string_equal(fault.value, "18446744073709551615");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_are_one_json_object),
        cmocka_unit_test(a_number_without_a_sign_is_told_without_one),
        cmocka_unit_test(settings_are_nested_64_deep_at_most),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
