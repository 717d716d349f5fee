#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "node/core/shard/asked_rows.h"

#define KEYS 500u

static struct slice number_key(char text[16], unsigned n)
{
    snprintf(text, 16, "key-%u", n);
    return slice_from_text(text);
}

static void forget(struct asked_rows *rows, struct slice key)
{
    struct asked_row *row = asked_rows_find(rows, key);

    if (row != NULL)
        asked_rows_remove(rows, row);
}

/* Against a plain array of flags, through growth and removals. */
static void a_row_is_asked_for_once_until_it_is_here(void **state)
{
    struct asked_rows rows = { 0 };
    struct asked_row *row = NULL;
    bool in[KEYS] = { false };
    char text[16];
    uint32_t random = 12345;
    (void)state;

    for (int step = 0; step < 20000; step++) {
        random = random * 1664525u + 1013904223u;
        unsigned n = (random >> 8) % KEYS;
        struct slice key = number_key(text, n);
        assert_int_equal(asked_rows_find(&rows, key) != NULL, in[n]);
        if (random >> 31)
            assert_int_equal(asked_rows_add(&rows, key, &row), !in[n]);
        else
            forget(&rows, key);
        in[n] = random >> 31 != 0;
        if (step % 1000 == 0)
            asked_rows_check(&rows);
    }
    asked_rows_deinit(&rows);
    assert_null(asked_rows_find(&rows, SLICE_LITERAL("gone")));
}

static void one_that_came_stale_is_asked_for_again_and_keeps_those_who_wait(void **state)
{
    struct asked_rows rows = { 0 };
    struct row_waiter waiters[3] = { 0 };
    struct asked_row *row = NULL;
    (void)state;

    assert_true(asked_rows_add(&rows, SLICE_LITERAL("a"), &row));
    for (int i = 0; i < 3; i++)
        row_waiter_begin(&waiters[i], row);
    row->again = true;
    assert_true(asked_rows_add(&rows, SLICE_LITERAL("a"), &row));
    assert_false(asked_rows_add(&rows, SLICE_LITERAL("a"), &row));
    assert_ptr_equal(row->first, &waiters[0]);
    row_waiter_end(&waiters[1]);
    row_waiter_end(&waiters[1]); /* It waits no more. */
    row_waiter_end(&waiters[0]);
    assert_ptr_equal(row->first, &waiters[2]);
    assert_ptr_equal(row->last, &waiters[2]);
    row_waiter_end(&waiters[2]);
    asked_rows_check(&rows);
    asked_rows_deinit(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_asked_for_once_until_it_is_here),
        cmocka_unit_test(one_that_came_stale_is_asked_for_again_and_keeps_those_who_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
