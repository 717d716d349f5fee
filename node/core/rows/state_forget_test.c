#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/rows/state.h"

static void check_free(struct state *state)
{
    state_check(state);
    state_free(state);
}

static struct slice S(const char *text) {
    return slice_from_text(text);
}

static void
put(struct state *state, const char *key, const char *value)
{
    state_begin(state);
    state_put(state, S(key), S(value));
    state_commit(state);
}

static void assert_row(struct state *state, const char *key, const char *value)
{
    struct slice found = { 0 };

    assert_int_equal(state_find(state, S(key), &found), STATE_PRESENT);
    assert_true(slice_equal(found, S(value)));
}

static void assert_found(struct state *state, const char *key, enum state_found expected)
{
    struct slice value;
    assert_int_equal(state_find(state, S(key), &value), expected);
}

/* A row that never was in the database: put as new and forgotten, perhaps in one transaction. */
static void put_new(struct state *state, const char *key, bool forget)
{
    state_begin(state);
    state_put_new(state, S(key), S("new"));
    if (forget) {
        state_put(state, S(key), S("changed"));
        state_forget(state, S(key));
    }
    state_commit(state);
}

static void forget(struct state *state, const char *key)
{
    state_begin(state);
    state_forget(state, S(key));
    state_commit(state);
}

static uint32_t writes_of_a_checkpoint(struct state *state, bool written)
{
    const struct state_write *writes;
    uint32_t count;

    assert_true(state_checkpoint_begin(state, &writes, &count));
    state_checkpoint_end(state, written);
    return count;
}

static void a_row_forgotten_before_any_checkpoint_leaves_nothing(void **context)
{
    struct state *state = state_new(1);
    struct state_stats stats;
    (void)context;

    put(state, "pother", "1");
    assert_int_equal(writes_of_a_checkpoint(state, true), 1);
    put_new(state, "xa", false);
    assert_row(state, "xa", "new");
    forget(state, "xa");
    put_new(state, "xa", true);
    assert_found(state, "xa", STATE_MISSING);
    state_stats_get(state, &stats);
    assert_int_equal(stats.rows, 1);
    assert_int_equal(stats.dirty_rows, 0);
    assert_int_equal(stats.dirty_bytes, 0);
    assert_int_equal(writes_of_a_checkpoint(state, true), 0);
    check_free(state);
}

/* Whether or not the checkpoint failed: something of it may be there. */
static void a_row_that_a_checkpoint_saw_is_deleted_in_the_database(void **context)
{
    (void)context;

    for (int written = 0; written < 2; written++) {
        struct state *state = state_new(1);
        put_new(state, "xa", false);
        assert_int_equal(writes_of_a_checkpoint(state, written), 1);
        forget(state, "xa");
        assert_found(state, "xa", STATE_ABSENT);
        assert_int_equal(writes_of_a_checkpoint(state, true), 1);
        check_free(state);
    }
    struct state *state = state_new(1);
    const struct state_write *writes;
    uint32_t count;
    put_new(state, "xa", false);
    assert_true(state_checkpoint_begin(state, &writes, &count));
    forget(state, "xa"); /* While it is being written. */
    assert_found(state, "xa", STATE_ABSENT);
    state_checkpoint_end(state, true);
    assert_int_equal(writes_of_a_checkpoint(state, true), 1);
    check_free(state);
}

/* The deletion is still to be written: a new row of the same key stands over it. */
static void a_row_put_as_new_over_a_deletion_is_none_that_the_database_lacks(void **context)
{
    struct state *state = state_new(1);
    (void)context;

    put(state, "qa", "1");
    assert_int_equal(writes_of_a_checkpoint(state, true), 1);
    forget(state, "qa");
    put_new(state, "qa", true);
    assert_found(state, "qa", STATE_ABSENT);
    assert_int_equal(writes_of_a_checkpoint(state, true), 1);
    check_free(state);
}

static void a_rollback_brings_forgotten_rows_back(void **context)
{
    struct state *state = state_new(1);
    (void)context;

    put_new(state, "xa", false);
    state_begin(state);
    state_forget(state, S("xa"));
    state_put_new(state, S("xb"), S("new"));
    state_forget(state, S("xb"));
    state_rollback(state);
    assert_row(state, "xa", "new");
    assert_found(state, "xb", STATE_MISSING);
    state_begin(state);
    state_forget(state, S("xa"));
    state_put(state, S("xa"), S("again"));
    state_commit(state);
    assert_row(state, "xa", "again");
    forget(state, "xa");
    assert_found(state, "xa", STATE_MISSING);
    assert_int_equal(writes_of_a_checkpoint(state, true), 0);
    check_free(state);
}

/* What a rollback took back says nothing of the transactions after it. */
static void a_row_whose_forgetting_was_undone_is_deleted_in_the_database(void **context)
{
    struct state *state = state_new(1);
    (void)context;

    put_new(state, "xa", false);
    state_begin(state);
    uint32_t mark = state_mark(state);
    state_forget(state, S("xa"));
    state_rollback_to(state, mark);
    state_check(state);
    state_commit(state);
    assert_int_equal(writes_of_a_checkpoint(state, true), 1);
    state_begin(state);
    state_delete(state, S("xa"));
    state_commit(state);
    assert_found(state, "xa", STATE_ABSENT);
    assert_int_equal(writes_of_a_checkpoint(state, true), 1);
    check_free(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_forgotten_before_any_checkpoint_leaves_nothing),
        cmocka_unit_test(a_row_that_a_checkpoint_saw_is_deleted_in_the_database),
        cmocka_unit_test(a_row_put_as_new_over_a_deletion_is_none_that_the_database_lacks),
        cmocka_unit_test(a_rollback_brings_forgotten_rows_back),
        cmocka_unit_test(a_row_whose_forgetting_was_undone_is_deleted_in_the_database),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
