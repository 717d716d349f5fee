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

#define MANY 100u

static void write_many(struct pair *pair, uint32_t at)
{
    for (uint32_t i = 0; i < MANY; i++) {
        pair_name(pair, 100 + i);
        pair_write(pair, at);
    }
}

static void drop_many(struct pair *pair, uint32_t at)
{
    struct merge_written written;

    for (uint32_t i = 0; i < MANY; i++) {
        pair_name(pair, 100 + i);
        assert_int_equal(merge_drop(pair->replicas[at], pair->now_ms, pair->key, &written), ERR_OK);
        pair_drain(pair, at);
    }
}

static uint32_t chunks, full_chunks;

static bool is_chunk(uint32_t from, struct slice message)
{
    struct reader reader = reader_from(message);
    struct merge_head head;

    assert_int_equal(merge_head_decode(&reader, &head), ERR_OK);
    if (from != 0 || head.kind != MERGE_CHUNK)
        return false;
    (void)read_raw(&reader, 16);
    chunks++;
    full_chunks += read_u8(&reader);
    return true;
}

static void index_is_lost_after_a_chunk(struct pair *pair, uint32_t from, struct slice message)
{
    if (is_chunk(from, message) && chunks == 1)
        dot_index_deinit(&pair->replicas[0]->index);
}

/* Each chunk made and sorted the whole list again: of 300,000 writes, hundreds of times. */
static void what_a_peer_lacks_is_looked_up_once_a_pull(void **state)
{
    struct pair *pair = *state;

    pair->cut = true;
    write_many(pair, 0);
    pair->cut = false;
    chunks = full_chunks = 0;
    pair->on_message = index_is_lost_after_a_chunk;
    pair_round(pair);
    are_equal(pair);
    assert_int_equal(chunks, MANY / pair->replicas[0]->options.chunk_records_max);
    assert_int_equal(full_chunks, 0);
    assert_int_equal(pair->replicas[0]->peers[0].lacking.count, 0);
}

static void rows_go_after_a_chunk(struct pair *pair, uint32_t from, struct slice message)
{
    if (!is_chunk(from, message) || chunks != 3)
        return;
    pair->cut = true; /* What it writes now is heard by the next pull alone. */
    drop_many(pair, 0);
    pair_name(pair, 100 + MANY / 2);
    pair_write(pair, 0);
    pair->cut = false;
}

static void a_pull_whose_records_go_meanwhile_ends_with_equal_members(void **state)
{
    struct pair *pair = *state;

    pair->cut = true;
    write_many(pair, 0);
    pair->cut = false;
    chunks = 0;
    pair->on_message = rows_go_after_a_chunk;
    for (uint32_t i = 0; i < 3; i++)
        pair_round(pair);
    are_equal(pair);
    for (uint32_t i = 0; i < PAIR; i++)
        assert_int_equal(pair->replicas[i]->store.count, 1);
}

static uint32_t lost;

static void one_chunk_is_lost(struct pair *pair, uint32_t from, struct slice message)
{
    if (is_chunk(from, message) && chunks == lost)
        pair->mute[0] = true;
}

/* The peer's next report began the walk again. */
static void a_walk_goes_on_where_a_chunk_was_lost(void **state)
{
    struct pair *pair = *state;
    const uint32_t steps = MANY / pair->replicas[0]->options.chunk_records_max;

    write_many(pair, 0);
    for (lost = 1; lost <= steps; lost += 3) {
        chunks = 0;
        pair->on_message = one_chunk_is_lost;
        buf_clear(&pair->logs[1]);
        pair_start(pair, 1, false);
        for (uint32_t i = 0; i < 4; i++) {
            pair_round(pair);
            pair->mute[0] = false;
        }
        assert_false(pair->replicas[1]->syncing);
        are_equal(pair);
        assert_int_equal(chunks, steps + 1);
    }
}

static uint32_t gone;

static void on_gone(void *user, struct merge_row *row)
{
    (void)user;
    assert_true(merge_record_is_void(&row->record));
    gone++;
}

/* Each moved all that stood behind it. */
static void documents_that_all_were_deleted_go_in_one_walk(void **state)
{
    struct pair *pair = *state;

    pair_write(pair, 0);
    write_many(pair, 0);
    for (uint32_t i = 0; i < 3; i++)
        pair_round(pair);
    pair->cut = true;
    drop_many(pair, 0);
    pair->cut = false;
    gone = 0;
    pair->replicas[1]->store.follower = (struct merge_follower){ .gone = on_gone };
    for (uint32_t i = 0; i < 4; i++)
        pair_round(pair);
    are_equal(pair);
    assert_int_equal(gone, MANY);
    for (uint32_t i = 0; i < PAIR; i++)
        assert_int_equal(pair->replicas[i]->store.count, 1);
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
        cmocka_unit_test_setup_teardown(what_a_peer_lacks_is_looked_up_once_a_pull, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_pull_whose_records_go_meanwhile_ends_with_equal_members,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_walk_goes_on_where_a_chunk_was_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(documents_that_all_were_deleted_go_in_one_walk, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
