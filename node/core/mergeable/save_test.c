/* What a checkpoint writes: what has changed, and no more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "node/core/mergeable/pair.h"

#define MANY 50u

struct saved {
    uint32_t rows, gone;
};

static int setup(void **state)
{
    static struct pair pair;

    pair_init(&pair);
    *state = &pair;
    return 0;
}

static int teardown(void **state)
{
    pair_deinit(*state);
    return 0;
}

static void on_gone(void *user, const struct merge_key *key)
{
    (void)key;
    ((struct saved *)user)->gone++;
}

static void on_row(void *user, const struct merge_row *row)
{
    (void)row;
    ((struct saved *)user)->rows++;
}

static void is_saved(struct pair *pair, uint32_t rows, uint32_t gone)
{
    struct saved saved = { 0 };

    merge_store_save(&pair->replicas[0]->store,
                     &(struct merge_saving){ .gone = on_gone, .row = on_row, .user = &saved });
    assert_int_equal(saved.rows, rows);
    assert_int_equal(saved.gone, gone);
}

static void write_many(struct pair *pair)
{
    for (uint32_t i = 0; i < MANY; i++) {
        pair_name(pair, 100 + i);
        pair_write(pair, 0);
    }
}

static void settle(struct pair *pair)
{
    for (uint32_t i = 0; i < 3; i++)
        pair_round(pair);
}

/* Each one encoded all rows to see which had changed. */
static void a_row_is_saved_once_for_each_change(void **state)
{
    struct pair *pair = *state;

    write_many(pair);
    is_saved(pair, MANY, 0);
    settle(pair); /* The clock says more of each row now, and the disk need not hear of it. */
    is_saved(pair, 0, 0);
    pair_write(pair, 0);
    pair_write(pair, 1);
    is_saved(pair, 1, 0);
}

static void a_row_that_the_disk_never_had_goes_without_a_word(void **state)
{
    struct pair *pair = *state;
    struct merge_written written;

    write_many(pair);
    is_saved(pair, MANY, 0);
    pair_name(pair, 200);
    pair_write(pair, 0);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(merge_drop(pair->replicas[0], pair->now_ms, pair->key, &written), ERR_OK);
        pair_drain(pair, 0);
        pair_name(pair, 100);
    }
    settle(pair);
    assert_int_equal(pair->replicas[0]->store.count, MANY - 1);
    is_saved(pair, 0, 1);
}

static void an_erased_row_goes_from_the_disk(void **state)
{
    struct pair *pair = *state;

    write_many(pair);
    is_saved(pair, MANY, 0);
    assert_int_equal(merge_store_erase(&pair->replicas[0]->store, SLICE_LITERAL("player:100"), 1),
                     ERR_OK);
    is_saved(pair, 0, 1);
    is_saved(pair, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_row_is_saved_once_for_each_change, setup, teardown),
        cmocka_unit_test_setup_teardown(a_row_that_the_disk_never_had_goes_without_a_word, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_erased_row_goes_from_the_disk, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
