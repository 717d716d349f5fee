#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/cluster/event_cursor.h"

#define SHARDS 4u

static void set(struct event_cursor *cursor, uint32_t shard, uint32_t life, uint8_t place)
{
    struct event_known *known = &cursor->known[shard];

    *known = (struct event_known){ .any = true, .life = life };
    known->place[3] = place;
}

static void what_it_counts_is_read_again(void **state)
{
    struct arena arena = { 0 };
    struct event_cursor cursor, again;
    (void)state;

    event_cursor_init(&cursor, SHARDS, &arena);
    cursor.counts = true;
    set(&cursor, 0, 7, 1);
    cursor.known[0].passed = 12;
    cursor.known[0].passed_ms = 1750000000000ull;
    set(&cursor, 1, 7, 2);
    cursor.known[1].passed = 1;
    cursor.known[1].passed_ms = 1749999999000ull;
    set(&cursor, 3, 7, 3); /* Whose count is not known. */
    const char *text = event_cursor_print(&cursor, &arena);
    assert_int_equal(event_cursor_decode(slice_from_text(text), SHARDS, &arena, &again), ERR_OK);
    assert_true(again.counts);
    for (uint32_t i = 0; i < SHARDS; i++) {
        assert_int_equal(again.known[i].any, i != 2);
        assert_int_equal(again.known[i].passed, cursor.known[i].passed);
        assert_int_equal(again.known[i].passed_ms, cursor.known[i].passed_ms);
        assert_memory_equal(again.known[i].place, cursor.known[i].place, EVENT_CURSOR_PLACE_BYTES);
    }
    assert_int_equal(event_cursor_passed_ms(&again, 0, 1), 1749999999000ull);
    assert_int_equal(event_cursor_passed_ms(&again, 0, 3), 0);
    assert_int_equal(event_cursor_passed_ms(&again, 3, 3), 0);
    cursor.counts = false; /* As readers of their own have it. */
    text = event_cursor_print(&cursor, &arena);
    assert_int_equal(event_cursor_decode(slice_from_text(text), SHARDS, &arena, &again), ERR_OK);
    assert_false(again.counts);
    assert_int_equal(again.known[0].passed, 0);
    assert_true(again.known[0].any);
    arena_deinit(&arena);
}

static void what_is_none_leaves_the_cursor_as_it_was(void **state)
{
    struct arena arena = { 0 };
    struct event_cursor cursor, kept = { .shard_count = 99 };
    (void)state;

    event_cursor_init(&cursor, SHARDS, &arena);
    const char *text = event_cursor_print(&cursor, &arena);
    assert_int_equal(event_cursor_decode(slice_from_text(text), 0, &arena, &cursor), ERR_OK);
    assert_int_equal(cursor.shard_count, SHARDS);
    assert_int_equal(event_cursor_decode(slice_from_text(text), 2 * SHARDS, &arena, &kept),
                     ERR_INVALID);
    assert_int_equal(event_cursor_decode(SLICE_LITERAL(""), 0, &arena, &kept), ERR_INVALID);
    for (size_t i = 0; text[i] != '\0'; i++) {
        char *bad = arena_printf(&arena, "%s", text);
        bad[i] = bad[i] == 'A' ? 'B' : 'A';
        assert_int_equal(event_cursor_decode(slice_from_text(bad), 0, &arena, &kept), ERR_INVALID);
        bad = arena_printf(&arena, "%.*s", (int)i, text);
        assert_int_equal(event_cursor_decode(slice_from_text(bad), 0, &arena, &kept), ERR_INVALID);
    }
    assert_int_equal(kept.shard_count, 99);
    arena_deinit(&arena);
}

static void going_back_in_one_shard_is_going_back(void **state)
{
    struct arena arena = { 0 };
    struct event_cursor was, is;
    (void)state;

    event_cursor_init(&was, SHARDS, &arena);
    event_cursor_init(&is, SHARDS, &arena);
    assert_false(event_cursor_goes_back(&was, &is));
    set(&is, 0, 7, 3);
    assert_false(event_cursor_goes_back(&was, &is));
    assert_true(event_cursor_goes_back(&is, &was)); /* Nothing is before a place. */
    set(&was, 0, 7, 2);
    assert_false(event_cursor_goes_back(&was, &is));
    set(&was, 1, 7, 9);
    set(&is, 1, 7, 8);
    assert_true(event_cursor_goes_back(&was, &is));
    set(&is, 1, 8, 8); /* Of another life: there is no order. */
    assert_false(event_cursor_goes_back(&was, &is));
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_counts_is_read_again),
        cmocka_unit_test(what_is_none_leaves_the_cursor_as_it_was),
        cmocka_unit_test(going_back_in_one_shard_is_going_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
