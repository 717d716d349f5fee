#include "node/core/session/timers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "runtime/base/buf.h"

#define NOW_MS   1000000u
#define ERASURES 5000u
#define LOOKS    6u /* As many as it takes to have looked at all of them. */

static void put(struct state *state, const struct row_key *key, bool readable)
{
    struct buf value = { 0 };

    timer_row_encode(7, &value);
    state_put(state, row_key_slice(key), readable ? buf_slice(&value) : SLICE_LITERAL("?"));
    buf_deinit(&value);
}

static void put_session(struct state *state, uint64_t due_ms)
{
    struct row_key key;

    row_key_timer(&key, due_ms, SLICE_LITERAL("player:ann"));
    put(state, &key, true);
}

/* So many that are due before what is put later; readable or not. */
static struct state *erasures_due(bool readable)
{
    struct state *state = state_new(1);
    struct row_key key;
    char name[32];

    state_begin(state);
    for (uint32_t i = 0; i < ERASURES; i++) {
        snprintf(name, sizeof name, "player:e%u", i);
        row_key_erasure_timer(&key, 1000 + i, slice_from_text(name), 1);
        put(state, &key, readable);
    }
    return state;
}

static bool finds_session(struct state *state, struct timers_look *looked)
{
    struct damage damage = { 0 };
    struct timer_row timer;

    return timers_first(state, looked, NOW_MS, &damage, &timer) && !timer_is_of_erasure(&timer) &&
           timer.due_ms <= NOW_MS;
}

static uint32_t looks_until_found(struct state *state)
{
    struct timers_look looked = { 0 };
    uint32_t looks = 1;

    while (looks <= LOOKS && !finds_session(state, &looked))
        looks++;
    return looks;
}

static void a_session_is_found_behind_many_erasures(void **state)
{
    struct state *rows = erasures_due(true);
    (void)state;

    put_session(rows, 500000);
    assert_in_range(looks_until_found(rows), 1, LOOKS);
    put_session(rows, 500); /* The first of all is found at once. */
    assert_int_equal(looks_until_found(rows), 1);
    state_commit(rows);
    state_free(rows);
}

static void a_session_is_found_behind_many_that_cannot_be_read(void **state)
{
    struct state *rows = erasures_due(false);
    (void)state;

    put_session(rows, 500000);
    assert_in_range(looks_until_found(rows), 1, LOOKS);
    state_commit(rows);
    state_free(rows);
}

/* None is due: the erasures go on, the first one first, and the look begins again. */
static void erasures_are_found_where_nothing_else_is_due(void **state)
{
    struct state *rows = erasures_due(true);
    struct timers_look looked = { 0 };
    struct damage damage = { 0 };
    struct timer_row timer;
    (void)state;

    put_session(rows, NOW_MS + 1);
    for (uint32_t i = 0; i < 3 * LOOKS; i++) {
        assert_true(timers_first(rows, &looked, NOW_MS, &damage, &timer));
        assert_true(timer_is_of_erasure(&timer));
        assert_int_equal(timer.due_ms, 1000);
    }
    put_session(rows, 999999);
    uint32_t looks = 0;

    while (looks <= LOOKS && !finds_session(rows, &looked))
        looks++;
    assert_true(looks <= LOOKS);
    state_commit(rows);
    state_free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_is_found_behind_many_erasures),
        cmocka_unit_test(a_session_is_found_behind_many_that_cannot_be_read),
        cmocka_unit_test(erasures_are_found_where_nothing_else_is_due),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
