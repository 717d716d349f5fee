#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "router/core/incident_cursor.h"
#include "runtime/base/check.h"

static struct arena arena;

static int release(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

static err parse(const char *text, struct incident_cursor *ret_cursor)
{
    Holdfast__V1__ErrorDetail detail;
    err e = incident_cursor_parse(slice_from_text(text), &arena, ret_cursor, &detail);

    if (e != ERR_OK)
        assert_string_equal(detail.field, "cursor");
    return e;
}

static void a_cursor_comes_back_as_it_was_told(void **state)
{
    struct incident_cursor cursor, again;
    (void)state;

    assert_int_equal(parse("", &cursor), ERR_OK);
    assert_int_equal(cursor.count, 0);
    assert_string_equal(incident_cursor_print(&cursor, &arena), "");
    assert_false(incident_cursor_advance(
        &cursor, &(struct incident_place){ UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - 2 }));
    assert_false(incident_cursor_advance(&cursor, &(struct incident_place){ 2, 5, 0 }));
    const char *text = incident_cursor_print(&cursor, &arena);
    assert_int_equal(parse(text, &again), ERR_OK);
    assert_int_equal(again.count, 2);
    assert_int_equal(incident_cursor_find(&again, UINT64_MAX)->after, UINT64_MAX - 2);
    assert_int_equal(incident_cursor_find(&again, 2)->life, 5);
    assert_null(incident_cursor_find(&again, 3));
}

static void a_restarted_node_is_noticed(void **state)
{
    struct incident_cursor cursor;
    (void)state;

    assert_int_equal(parse("7.1.40", &cursor), ERR_OK);
    assert_false(incident_cursor_advance(&cursor, &(struct incident_place){ 7, 1, 41 }));
    assert_true(incident_cursor_advance(&cursor, &(struct incident_place){ 7, 2, 3 }));
    assert_int_equal(incident_cursor_find(&cursor, 7)->after, 3);
    assert_int_equal(cursor.count, 1);
}

/* However often nodes are replaced, a cursor that was told is taken again. */
static void too_many_nodes_forget_the_first(void **state)
{
    struct incident_cursor cursor = { .count = 0 }, again;
    (void)state;

    for (uint64_t id = 1; id <= CLUSTER_NODES_MAX + 3; id++)
        assert_false(incident_cursor_advance(&cursor, &(struct incident_place){ id, 1, id }));
    assert_null(incident_cursor_find(&cursor, 3));
    assert_int_equal(incident_cursor_find(&cursor, 4)->after, 4);
    assert_int_equal(parse(incident_cursor_print(&cursor, &arena), &again), ERR_OK);
    assert_int_equal(again.count, CLUSTER_NODES_MAX);
}

static void what_is_no_cursor_is_refused(void **state)
{
    static const char *const texts[] = {
        "1",           "1.2",    "1.2.",  ".1.2",        "1..2",   "1.2.3.4",
        "1.2.3;4.5.6", "-1.2.3", "1.2.x", "1.2.3,1.2.4", " 1.2.3", "18446744073709551616.1.1",
    };
    struct incident_cursor cursor;
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        assert_int_equal(parse(texts[i], &cursor), ERR_INVALID);
        assert_int_equal(cursor.count, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cursor_comes_back_as_it_was_told),
        cmocka_unit_test(a_restarted_node_is_noticed),
        cmocka_unit_test(too_many_nodes_forget_the_first),
        cmocka_unit_test(what_is_no_cursor_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, release);
}
