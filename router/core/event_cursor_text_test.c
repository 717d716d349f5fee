#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "router/core/event_cursor_text.h"

#define SHARDS 8u

static err parse(const char *text, struct arena *arena, struct event_cursor *ret_cursor)
{
    Holdfast__V1__ErrorDetail detail;

    return event_cursor_parse(slice_from_text(text), SHARDS, arena, ret_cursor, &detail);
}

static void nothing_is_known_at_first(void **state)
{
    struct arena arena = { 0 };
    struct event_cursor cursor;
    (void)state;

    assert_int_equal(parse("", &arena, &cursor), ERR_OK);
    for (uint32_t i = 0; i < SHARDS; i++)
        assert_false(cursor.known[i].any);
    assert_int_equal(parse(event_cursor_print(&cursor, &arena), &arena, &cursor), ERR_OK);
    assert_int_equal(cursor.shard_count, SHARDS);
    assert_false(cursor.known[3].any);
    arena_deinit(&arena);
}

static void what_is_printed_is_read_again(void **state)
{
    struct arena arena = { 0 };
    struct event_cursor cursor, again;
    (void)state;

    assert_int_equal(parse("", &arena, &cursor), ERR_OK);
    cursor.turn = 5;
    for (uint32_t i = 0; i < SHARDS; i += 2) {
        cursor.known[i].any = true;
        cursor.known[i].life = 77 + i;
        for (uint32_t j = 0; j < EVENT_CURSOR_PLACE_BYTES; j++)
            cursor.known[i].place[j] = i == 0 ? 0xff : (uint8_t)(i * 31 + j);
    }
    assert_int_equal(parse(event_cursor_print(&cursor, &arena), &arena, &again), ERR_OK);
    assert_int_equal(again.turn, 5);
    for (uint32_t i = 0; i < SHARDS; i++) {
        assert_int_equal(again.known[i].any, i % 2 == 0);
        assert_int_equal(again.known[i].life, cursor.known[i].life);
        assert_memory_equal(again.known[i].place, cursor.known[i].place, EVENT_CURSOR_PLACE_BYTES);
    }
    arena_deinit(&arena);
}

static void what_was_changed_is_refused(void **state)
{
    struct arena arena = { 0 };
    struct event_cursor cursor;
    Holdfast__V1__ErrorDetail detail;
    (void)state;

    assert_int_equal(parse("", &arena, &cursor), ERR_OK);
    cursor.known[1].any = true;
    cursor.known[1].place[7] = 3;
    char *text = event_cursor_print(&cursor, &arena);
    size_t size = strlen(text);
    for (size_t i = 0; i < size; i++) {
        char was = text[i];
        text[i] = was == 'A' ? 'B' : 'A';
        assert_int_equal(parse(text, &arena, &cursor), ERR_INVALID);
        assert_false(cursor.known[1].any);
        text[i] = was;
    }
    assert_int_equal(parse(text, &arena, &cursor), ERR_OK);
    assert_int_equal(
        event_cursor_parse(slice_from_text(text), 2 * SHARDS, &arena, &cursor, &detail),
        ERR_INVALID); /* Of another cluster. */
    assert_string_equal(detail.field, "cursor");
    text[size - 4] = 0;
    assert_int_equal(parse(text, &arena, &cursor), ERR_INVALID);
    assert_int_equal(parse("no cursor!", &arena, &cursor), ERR_INVALID);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known_at_first),
        cmocka_unit_test(what_is_printed_is_read_again),
        cmocka_unit_test(what_was_changed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
