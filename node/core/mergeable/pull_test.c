/* A member that was away, or is new, comes to have everything, however much that is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "node/core/mergeable/pair.h"
#include "node/core/mergeable/pull.h"

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

static void are_equal(const struct pair *pair)
{
    const struct merge_replica *a = pair->replicas[0], *b = pair->replicas[1];

    assert_true(mclock_includes(&a->clock, &b->clock));
    assert_true(mclock_includes(&b->clock, &a->clock));
    assert_true(hash128_equal(merge_store_digest(&a->store), merge_store_digest(&b->store)));
}

/* All dots of a document that was written over and over made one message of 16 bytes each, above
 * what a link takes. */
static void one_document_written_often_is_pulled_in_small_messages(void **state)
{
    struct pair *pair = *state;

    pair->replicas[0]->index.dots_max = 1u << 20;
    pair->cut = true;
    for (uint32_t i = 0; i < 30000; i++)
        pair_write(pair, 0);
    pair->cut = false;
    pair->message_bytes_max = 0;
    for (uint32_t i = 0; i < 3; i++)
        pair_round(pair);
    are_equal(pair);
    assert_true(pair->message_bytes_max < 2 * MERGE_ITEM_DOTS_MAX * 16);
}

/* The process has written more than a clock's bitmap reaches over, as one that lives long has. */
static void write_after_millions(struct pair *pair)
{
    struct merge_replica *replica = pair->replicas[0];
    struct mclock_actor wrote = { .actor = replica->actor,
                                  .member = 1,
                                  .base = 3 * (uint64_t)MCLOCK_BITS_MAX };
    struct mclock clock = { .count = 1, .actors = &wrote };

    assert_int_equal(mclock_join(&replica->clock, &clock, MCLOCK_CLOSE_AGREED), ERR_OK);
    replica->counter = wrote.base;
    pair->cut = true;
    pair_write(pair, 0);
    pair->cut = false;
}

static void a_new_member_takes_in_what_was_written_after_millions(void **state)
{
    struct pair *pair = *state;

    write_after_millions(pair);
    buf_clear(&pair->logs[1]);
    pair_start(pair, 1, false);
    for (uint32_t i = 0; i < 3; i++)
        pair_round(pair);
    assert_false(pair->replicas[1]->syncing);
    are_equal(pair);
}

/* Its clock cannot hold the dot before the pull, its disk has the record. */
static void a_write_that_is_heard_before_the_pull_is_kept(void **state)
{
    struct pair *pair = *state;

    write_after_millions(pair);
    buf_clear(&pair->logs[1]);
    pair_start(pair, 1, true);
    pair->mute[1] = true; /* It asks for nothing yet. */
    pair_write(pair, 0);
    assert_int_equal(pair->replicas[1]->store.count, 1);
    pair_start(pair, 1, true);
    assert_int_equal(pair->replicas[1]->store.count, 1);
    pair->mute[1] = false;
    for (uint32_t i = 0; i < 3; i++)
        pair_round(pair);
    are_equal(pair);
    assert_false(pair->replicas[1]->dots_above);
}

/* Each waited for another that has everything, and no act of an operator ended that. */
static void two_members_that_lost_their_disks_give_each_other_what_they_have(void **state)
{
    struct pair *pair = *state;

    pair_write(pair, 0);
    buf_clear(&pair->logs[1]);
    pair->cut = true;
    pair_start(pair, 0, false);
    pair_start(pair, 1, false);
    pair->cut = false;
    for (uint32_t i = 0; i < 4; i++)
        pair_round(pair);
    for (uint32_t i = 0; i < PAIR; i++) {
        assert_false(pair->replicas[i]->syncing);
        assert_int_equal(pair->replicas[i]->store.count, 1);
    }
    are_equal(pair);
    pair_write(pair, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_document_written_often_is_pulled_in_small_messages,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_new_member_takes_in_what_was_written_after_millions,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_write_that_is_heard_before_the_pull_is_kept, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            two_members_that_lost_their_disks_give_each_other_what_they_have, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
