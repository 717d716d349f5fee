/* What a router knows of settings: the latest version of each, in whatever order they come. */
#include "router/core/settings_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/definition.pb-c.h"
#include "runtime/base/check.h"

#define GONE NULL

struct given {
    uint64_t number, version;
    const char *name, *json;
};

static err take(struct settings_table *table, struct given given,
                const struct settings **ret_changed)
{
    Holdfast__Internal__V1__DefinitionVersion record =
        HOLDFAST__INTERNAL__V1__DEFINITION_VERSION__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__SettingsBody settings = HOLDFAST__V1__SETTINGS_BODY__INIT;
    uint8_t bytes[8192];

    settings.json = text_lend(given.json != GONE ? given.json : "{\"before\":1}");
    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_SETTINGS;
    body.settings = &settings;
    record.number = given.number;
    record.version = given.version;
    record.name = text_lend(given.name);
    record.deleted = given.json == GONE;
    record.body = &body;
    record.at_ms = (int64_t)(1000 * given.version);
    return settings_table_take(
        table,
        (struct slice){ bytes, holdfast__internal__v1__definition_version__pack(&record, bytes) },
        ret_changed);
}

static bool put(struct settings_table *table, uint64_t number, uint64_t version, const char *name,
                const char *json)
{
    const struct settings *changed;

    assert_int_equal(take(table, (struct given){ number, version, name, json }, &changed), ERR_OK);
    if (changed != NULL)
        assert_string_equal(changed->name, name);
    return changed != NULL;
}

static void assert_stands(const struct settings_table *table, const char *name, uint64_t version,
                          const char *json)
{
    const struct settings *settings = settings_table_find(table, name);

    assert_non_null(settings);
    assert_int_equal(settings->version, version);
    assert_int_equal(settings->made_at_ms, 1000 * version);
    assert_string_equal(settings->json, json);
}

static void the_latest_version_stands_whatever_the_order(void **state)
{
    struct settings_table table = { 0 };

    (void)state;
    assert_true(put(&table, 7, 1, "match", "{\"a\":1}"));
    assert_true(put(&table, 7, 3, "match", "{\"a\":3}"));
    assert_false(put(&table, 7, 2, "match", "{\"a\":2}"));
    assert_false(put(&table, 7, 3, "match", "{\"a\":3}"));
    assert_true(put(&table, 3, 1, "shop", "{}"));
    assert_stands(&table, "match", 3, "{\"a\":3}");
    assert_stands(&table, "shop", 1, "{}");
    assert_null(settings_table_find(&table, "matc"));
    struct slice meant = settings_table_suggest(&table, "matc");
    assert_true(slice_equal(meant, SLICE_LITERAL("match")));
    settings_table_deinit(&table);
}

static void a_name_that_is_made_again_is_another_number(void **state)
{
    struct settings_table table = { 0 };

    (void)state;
    put(&table, 7, 5, "match", "{\"a\":1}");
    assert_true(put(&table, 7, 6, "match", GONE));
    assert_null(settings_table_find(&table, "match"));
    assert_int_equal(settings_table_suggest(&table, "matc").size, 0);
    assert_false(put(&table, 7, 5, "match", "{\"a\":1}"));
    assert_null(settings_table_find(&table, "match"));
    put(&table, 2, 1, "match", "{\"a\":2}");
    assert_stands(&table, "match", 1, "{\"a\":2}");
    settings_table_deinit(&table);
}

static void old_versions_go_and_take_nothing_with_them(void **state)
{
    struct settings_table table = { 0 };

    (void)state;
    put(&table, 7, 1, "match", "{\"a\":1}");
    put(&table, 7, 2, "match", "{\"a\":2}");
    assert_false(settings_table_forget(&table, 7, 1));
    assert_false(settings_table_forget(&table, 8, 1));
    assert_stands(&table, "match", 2, "{\"a\":2}");
    put(&table, 7, 3, "match", GONE);
    assert_true(settings_table_forget(&table, 7, 3));
    assert_int_equal(table.count, 0);
    table.complete = true;
    put(&table, 9, 1, "shop", "{}");
    settings_table_clear(&table);
    assert_false(table.complete);
    assert_null(settings_table_find(&table, "shop"));
    settings_table_deinit(&table);
}

static void what_is_no_settings_changes_nothing(void **state)
{
    Holdfast__Internal__V1__DefinitionVersion record =
        HOLDFAST__INTERNAL__V1__DEFINITION_VERSION__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__CounterBody counter = HOLDFAST__V1__COUNTER_BODY__INIT;
    struct settings_table table = { 0 };
    const struct settings *changed;
    uint8_t bytes[64];
    char large[SETTINGS_JSON_MAX + 2], name[SETTINGS_NAME_MAX + 2];

    (void)state;
    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_COUNTER;
    body.counter = &counter;
    record.number = record.version = 1;
    record.name = text_lend("match");
    record.body = &body;
    size_t size = holdfast__internal__v1__definition_version__pack(&record, bytes);
    assert_int_equal(settings_table_take(&table, (struct slice){ bytes, size }, &changed), ERR_OK);
    assert_null(changed);
    assert_int_equal(settings_table_take(&table, (struct slice){ bytes, size - 1 }, &changed),
                     ERR_CORRUPT);
    memset(large, ' ', sizeof large - 1);
    large[sizeof large - 1] = 0;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    assert_int_equal(take(&table, (struct given){ 1, 1, "match", large }, &changed), ERR_CORRUPT);
    assert_int_equal(take(&table, (struct given){ 1, 1, name, "{}" }, &changed), ERR_CORRUPT);
    assert_int_equal(take(&table, (struct given){ 0, 1, "match", "{}" }, &changed), ERR_CORRUPT);
    assert_int_equal(take(&table, (struct given){ 1, 0, "match", "{}" }, &changed), ERR_CORRUPT);
    assert_int_equal(table.count, 0);
    settings_table_deinit(&table);
}

static void there_is_a_limit(void **state)
{
    struct settings_table table = { 0 };
    const struct settings *changed;
    char name[16];

    (void)state;
    for (uint32_t i = 1; i <= SETTINGS_MAX; i++) {
        snprintf(name, sizeof name, "s%u", i);
        assert_true(put(&table, i, 1, name, "{}"));
    }
    assert_int_equal(take(&table, (struct given){ SETTINGS_MAX + 1, 1, "more", "{}" }, &changed),
                     ERR_FULL);
    assert_true(put(&table, 1, 2, "s1", "{\"a\":1}"));
    settings_table_deinit(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_latest_version_stands_whatever_the_order),
        cmocka_unit_test(a_name_that_is_made_again_is_another_number),
        cmocka_unit_test(old_versions_go_and_take_nothing_with_them),
        cmocka_unit_test(what_is_no_settings_changes_nothing),
        cmocka_unit_test(there_is_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
