#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "router/core/trace_cursor.h"
#include "runtime/base/check.h"

#define SHARDS 64u

static struct arena arena;

static int release(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

static err begin(const char *uid, const char *cursor, struct trace_cursor *ret_cursor,
                 Holdfast__V1__ErrorDetail *ret_detail)
{
    Holdfast__V1__TraceItemRequest request = HOLDFAST__V1__TRACE_ITEM_REQUEST__INIT;

    request.item_uid = text_lend(uid);
    request.cursor = text_lend(cursor);
    return trace_cursor_begin(&request, SHARDS, &arena, ret_cursor, ret_detail);
}

static void a_trace_begins_where_the_item_was_minted(void **state)
{
    struct trace_cursor cursor;
    Holdfast__V1__ErrorDetail detail;
    (void)state;

    assert_int_equal(begin("002a0000000000010000000000070000", "", &cursor, &detail), ERR_OK);
    assert_int_equal(cursor.step, 0);
    assert_int_equal(cursor.shard, 42);
    assert_int_equal(cursor.other, 42);
}

static void a_cursor_comes_back_as_it_was_told(void **state)
{
    const struct trace_cursor told = { .step = 4294967295u, .shard = 3, .other = 63 };
    struct trace_cursor cursor;
    Holdfast__V1__ErrorDetail detail;
    (void)state;

    assert_int_equal(begin("002a0000000000010000000000070000", trace_cursor_print(&told, &arena),
                           &cursor, &detail),
                     ERR_OK);
    assert_int_equal(cursor.step, told.step);
    assert_int_equal(cursor.shard, told.shard);
    assert_int_equal(cursor.other, told.other);
}

static void what_is_no_cursor_is_refused(void **state)
{
    static const char *const cursors[] = {
        "1",      "1.",    "1.2",    "1.2.",   "1.2.3.",         "1.2.3x",
        "0.1.1",  ".1.1",  "1.64.1", "1.1.64", "4294967296.1.1", "-1.1.1",
        " 1.1.1", "1,1,1", "a.b.c",
    };
    struct trace_cursor cursor;
    Holdfast__V1__ErrorDetail detail;
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(cursors); i++) {
        assert_int_equal(begin("002a0000000000010000000000070000", cursors[i], &cursor, &detail),
                         ERR_INVALID);
        assert_string_equal(detail.field, "cursor");
        assert_string_equal(detail.value, cursors[i]);
    }
}

static void what_is_no_uid_is_refused(void **state)
{
    static const char *const uids[] = {
        "",
        "2a",
        "002a000000000001000000000007000",
        "002a00000000000100000000000700000",
        "002A0000000000010000000000070000",
        "002a000000000001000000000007000g",
    };
    struct trace_cursor cursor;
    Holdfast__V1__ErrorDetail detail;
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(uids); i++) {
        assert_int_equal(begin(uids[i], "", &cursor, &detail), ERR_INVALID);
        assert_string_equal(detail.field, "item_uid");
        assert_int_equal(detail.code, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INVALID_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_begins_where_the_item_was_minted),
        cmocka_unit_test(a_cursor_comes_back_as_it_was_told),
        cmocka_unit_test(what_is_no_cursor_is_refused),
        cmocka_unit_test(what_is_no_uid_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, release);
}
