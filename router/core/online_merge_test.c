/* Cursors of ListOnline; its pages are tested where they are asked for (presence_list_online_test).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "router/core/online_merge.h"

static void cursors_are_read_as_they_were_printed(void **state)
{
    static const struct online_cursor cursors[] = {
        { false, 1, 0, "" },
        { true, INT64_MAX, UINT64_MAX, "a.b c.\xc3\xa9" },
    };
    struct arena arena = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof cursors / sizeof cursors[0]; i++) {
        struct online_cursor read;

        assert_int_equal(
            online_cursor_parse(online_cursor_print(&cursors[i], &arena), &arena, &read), ERR_OK);
        assert_int_equal(read.upwards, cursors[i].upwards);
        assert_int_equal(read.begun_ms, cursors[i].begun_ms);
        assert_int_equal(read.at, cursors[i].at);
        assert_string_equal(read.player_id, cursors[i].player_id);
    }
    arena_deinit(&arena);
}

static void what_is_no_cursor_is_refused(void **state)
{
    static const char *const bad[] = { "x1.1.a",
                                       "d",
                                       "d1",
                                       "d1.1",
                                       "d0.1.a",
                                       "d-1.1.a",
                                       "d1.x.a",
                                       "d9223372036854775808.1.a",
                                       "u1.18446744073709551616.a" };
    struct arena arena = { 0 };
    struct online_cursor read;
    char large[128] = "d1.1.";

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(online_cursor_parse(bad[i], &arena, &read), ERR_INVALID);
    memset(large + 5, 'a', 101);
    assert_int_equal(online_cursor_parse(large, &arena, &read), ERR_INVALID);
    assert_int_equal(online_cursor_parse("", &arena, &read), ERR_OK);
    assert_int_equal(read.begun_ms, 0);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cursors_are_read_as_they_were_printed),
        cmocka_unit_test(what_is_no_cursor_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
