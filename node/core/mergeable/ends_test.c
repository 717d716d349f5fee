/* Ends of actors: closed by agreement, forgotten by eras; and what a shard of two says when idle.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "node/core/mergeable/members.h"
#include "node/core/mergeable/message.h"
#include "node/core/mergeable/pair.h"
#include "node/core/mergeable/rounds.h"

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

static void restarts_by_the_hundred_leave_a_short_clock(void **state)
{
    struct pair *pair = *state;
    uint32_t most = 0;

    for (uint32_t i = 0; i < 1200; i++) {
        uint32_t at = i % 7 == 0;

        pair_start(pair, at, true);
        pair_write(pair, at);
        for (uint32_t j = 0; j < 4; j++)
            pair_round(pair);
        most = pair->replicas[0]->clock.count > most ? pair->replicas[0]->clock.count : most;
    }
    assert_true(most <= 24); /* Twice closed_max, and what is open meanwhile. */
    assert_true(pair->replicas[0]->clock.era > 10);
    assert_true(mclock_includes(&pair->replicas[0]->clock, &pair->replicas[1]->clock));
    assert_true(hash128_equal(merge_store_digest(&pair->replicas[0]->store),
                              merge_store_digest(&pair->replicas[1]->store)));
}

/* Seed 3232: a write came by a third member, and nothing told any more whose actor made it. Its
 * dots had a gap, so no floor rose over them, and a delete stayed for ever. */
static void an_actor_that_is_of_no_member_is_closed(void **state)
{
    struct pair *pair = *state;
    const struct merge_dot orphan = { merge_actor_make(0, 77), 9 };

    for (uint32_t i = 0; i < PAIR; i++)
        assert_int_equal(mclock_add(&pair->replicas[i]->clock, orphan), ERR_OK);
    assert_int_equal(mclock_find(&pair->replicas[0]->clock, orphan.actor)->member, 0);
    for (uint32_t i = 0; i < 3; i++)
        pair_round(pair);
    for (uint32_t i = 0; i < PAIR; i++)
        assert_true(mclock_find(&pair->replicas[i]->clock, orphan.actor)->closed);
    assert_false(mclock_find(&pair->replicas[0]->clock, pair->replicas[0]->actor)->closed);
    assert_false(mclock_find(&pair->replicas[0]->clock, pair->replicas[1]->actor)->closed);
}

/* Seed 1553: a peer was heard under its next actor before it reported what the former one wrote. */
static void an_actor_is_not_closed_by_a_report_of_before_its_last_write(void **state)
{
    struct pair *pair = *state;
    uint64_t former = pair->replicas[1]->actor;

    for (uint32_t i = 0; i < 3; i++)
        pair_round(pair);
    pair->cut = true;
    pair_write(pair, 1);
    pair->cut = false;
    merge_take_actor(pair->replicas[1], 1);
    pair_drain(pair, 1);
    struct buf *ask = merge_message_begin(pair->replicas[1], MERGE_ASK, 1, 0);

    buf_put_u64(ask, 1);
    merge_key_encode(pair->key, ask);
    pair_drain(pair, 1);
    pair->now_ms += MERGE_REPORT_MS;
    merge_tick(pair->replicas[0], pair->now_ms);
    assert_false(mclock_find(&pair->replicas[0]->clock, former)->closed);
    pair_drain(pair, 0);
    for (uint32_t i = 0; i < 6; i++)
        pair_round(pair);
    for (uint32_t i = 0; i < PAIR; i++)
        assert_true(mclock_covers(&pair->replicas[i]->clock, (struct merge_dot){ former, 1 }));
    assert_int_equal(pair->replicas[0]->store.count, 1);
}

/* The report is from before that member's last write and its next actor; it comes after both were
 * heard of, and before the write could be pulled. */
static void an_actor_is_not_closed_by_a_report_that_was_long_on_its_way(void **state)
{
    struct pair *pair = *state;
    uint64_t former = pair->replicas[1]->actor;
    struct buf late = { 0 };

    pair_write(pair, 1);
    pair->now_ms += MERGE_REPORT_MS;
    merge_tick(pair->replicas[1], pair->now_ms);
    for (uint32_t i = 0; i < pair->replicas[1]->out.message_count; i++) {
        const struct buf *bytes = &pair->replicas[1]->out.messages[i].bytes;

        if (bytes->data[0] == MERGE_REPORT && late.size == 0)
            buf_append(&late, bytes->data, bytes->size);
    }
    assert_true(late.size > 0);
    pair_drain(pair, 1);
    pair->cut = true;
    pair_write(pair, 1);
    pair->cut = false;
    merge_take_actor(pair->replicas[1], 1);
    pair->mute[0] = true; /* It asks for the write, and is not heard. */
    pair->now_ms += MERGE_REPORT_MS;
    merge_tick(pair->replicas[1], pair->now_ms);
    pair_drain(pair, 1);
    assert_int_equal(merge_receive(pair->replicas[0], pair->now_ms, buf_slice(&late)), ERR_OK);
    pair->now_ms += MERGE_REPORT_MS;
    merge_tick(pair->replicas[0], pair->now_ms);
    assert_false(mclock_find(&pair->replicas[0]->clock, former)->closed);
    pair_drain(pair, 0);
    pair->mute[0] = false;
    for (uint32_t i = 0; i < 6; i++)
        pair_round(pair);
    for (uint32_t i = 0; i < PAIR; i++) {
        const struct merge_record *record = merge_store_find(&pair->replicas[i]->store, pair->key);

        assert_true(mclock_floor(&pair->replicas[i]->clock, former) == UINT64_MAX);
        assert_non_null(record);
        assert_int_equal(record->count, 1);
        assert_true(merge_dot_equal(record->cells[0]->dot, (struct merge_dot){ former, 2 }));
    }
    buf_deinit(&late);
}

/* A write of the former process is on its way still, to a member that hears of no other one. */
static void an_actor_is_not_closed_by_who_has_not_heard_of_its_end(void **state)
{
    struct pair *pair = *state;
    uint64_t former = pair->replicas[1]->actor;
    struct merge_edit edit = { .path = SLICE_LITERAL("b"), .value = SLICE_LITERAL("v") };
    struct merge_write write = { .key = pair->key,
                                 .policy = MERGE_POLICY_MERGE,
                                 .durability = MERGE_MEMORY,
                                 .edit_count = 1,
                                 .edits = &edit };
    struct merge_written written;
    struct merge_refusal refusal = { 0 };
    struct buf late = { 0 };

    for (uint32_t i = 0; i < 3; i++)
        pair_round(pair);
    assert_int_equal(merge_write(pair->replicas[1], pair->now_ms, &write, &written, &refusal),
                     ERR_OK);
    const struct merge_out *out = &pair->replicas[1]->out;

    assert_int_equal(out->message_count, 1);
    buf_append(&late, out->messages[0].bytes.data, out->messages[0].bytes.size);
    pair->mute[1] = true;
    pair_start(pair, 1, true);
    pair_write(pair, 0); /* So its next report has its clock. */
    for (uint32_t i = 0; i < 3; i++)
        pair_round(pair);
    assert_false(mclock_find(&pair->replicas[1]->clock, former)->closed);
    assert_int_equal(merge_receive(pair->replicas[0], pair->now_ms, buf_slice(&late)), ERR_OK);
    pair_drain(pair, 0);
    pair->mute[1] = false;
    for (uint32_t i = 0; i < 6; i++)
        pair_round(pair);
    for (uint32_t i = 0; i < PAIR; i++) {
        const struct merge_record *record = merge_store_find(&pair->replicas[i]->store, pair->key);

        assert_non_null(record);
        assert_int_equal(record->count, 2);
        assert_true(mclock_floor(&pair->replicas[i]->clock, former) == UINT64_MAX);
    }
    buf_deinit(&late);
}

/* Seed 65: a write showed in its context what its member had closed. That member crashed before the
 * closing was on its disk, so one record had closed the actor, and no clock had. */
static void what_shows_a_closing_waits_for_the_disk(void **state)
{
    struct pair *pair = *state;
    struct merge_replica *replica = pair->replicas[0];
    uint64_t former = pair->replicas[1]->actor;
    struct merge_edit edit = { .path = SLICE_LITERAL("a"), .value = SLICE_LITERAL("v") };
    struct merge_write write = { .key = pair->key,
                                 .policy = MERGE_POLICY_MERGE,
                                 .durability = MERGE_MEMORY,
                                 .edit_count = 1,
                                 .edits = &edit };
    struct merge_written written;
    struct merge_refusal refusal = { 0 };
    uint64_t durable = 0;

    pair_write(pair, 1);
    pair_start(pair, 1, true);
    for (uint32_t i = 0; i < 4 && !mclock_find(&replica->clock, former)->closed; i++) {
        pair_round(pair);
        pair->now_ms += MERGE_REPORT_MS;
        durable = replica->log_durable;
        merge_tick(replica, pair->now_ms);
    }
    assert_true(mclock_find(&replica->clock, former)->closed);
    assert_true(replica->log_end > durable);
    uint32_t before = replica->out.message_count;

    assert_int_equal(merge_write(replica, pair->now_ms, &write, &written, &refusal), ERR_OK);
    assert_true(replica->out.message_count > before);
    for (uint32_t i = before; i < replica->out.message_count; i++)
        assert_true(replica->out.messages[i].after_log > durable);
    pair_drain(pair, 0);
    before = replica->out.message_count;
    assert_int_equal(merge_write(replica, pair->now_ms, &write, &written, &refusal), ERR_OK);
    assert_true(replica->out.message_count > before);
    for (uint32_t i = before; i < replica->out.message_count; i++)
        assert_true(replica->out.messages[i].after_log <= replica->log_durable);
    pair_drain(pair, 0);
}

/* No report names that actor, since the clock is full; it is the actor of the report all the same.
 */
static void an_era_is_not_forgotten_under_a_member_whose_clock_is_full(void **state)
{
    struct pair *pair = *state;
    uint64_t last = 0;

    for (uint32_t i = 0; i < PAIR; i++) {
        struct mclock *clock = &pair->replicas[i]->clock;

        for (uint64_t n = 1; clock->count < MCLOCK_ACTORS_MAX; n++) {
            uint64_t actor = merge_actor_make(0, (uint64_t)1 << 40 | n);

            assert_int_equal(mclock_name(clock, actor, 9), ERR_OK);
            mclock_close(clock, actor);
        }
    }
    merge_take_actor(pair->replicas[1], 1);
    last = pair->replicas[1]->actor;
    merge_take_actor(pair->replicas[0], 2);
    assert_null(mclock_find(&pair->replicas[1]->clock, last));
    for (uint32_t round = 0; round < 6; round++) {
        pair->now_ms += MERGE_REPORT_MS;
        for (uint32_t i = 0; i < PAIR; i++) {
            merge_tick(pair->replicas[i], pair->now_ms);
            assert_true(pair->replicas[i]->clock.era <= merge_actor_era(pair->replicas[1]->actor));
            pair_drain(pair, i);
        }
    }
    assert_int_equal(pair->replicas[0]->clock.era, 1); /* So there is room again. */
    assert_true(pair->replicas[1]->actor == last);
    pair_write(pair, 1);
    assert_true(mclock_holds(&pair->replicas[0]->clock, (struct merge_dot){ last, 1 }));
}

/* BREADTH 16: at most 200 bytes a pair and 2 s, whatever the clocks have. */
static void an_idle_pair_says_little(void **state)
{
    struct pair *pair = *state;

    for (uint32_t i = 0; i < 20; i++) {
        pair_start(pair, i % 2, true);
        pair_write(pair, i % 2);
        for (uint32_t j = 0; j < 3; j++)
            pair_round(pair);
    }
    pair->bytes = 0;
    pair_round(pair);
    assert_true(pair->bytes > 0);
    assert_true(pair->bytes <= 200);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Its peer took it for the former process's past, and it took everything in for ever. */
static void a_member_that_lost_its_disk_and_its_time_is_heard(void **state)
{
    struct pair *pair = *state;

    for (uint32_t i = 0; i < 3; i++)
        pair_start(pair, 1, true);
    pair_write(pair, 0);
    pair_round(pair);
    uint64_t former = pair->replicas[1]->options.boot;

    buf_clear(&pair->logs[1]);
    pair->boots[1] = 0;
    pair_start(pair, 1, false);
    assert_true(pair->replicas[1]->options.boot < former);
    for (uint32_t i = 0; i < 4; i++)
        pair_round(pair);
    assert_true(pair->replicas[1]->options.boot > former);
    assert_false(pair->replicas[1]->syncing);
    pair_name(pair, 2);
    pair_write(pair, 1);
    pair_round(pair);
    assert_int_equal(pair->replicas[0]->store.count, 2);
    assert_int_equal(pair->replicas[1]->store.count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(restarts_by_the_hundred_leave_a_short_clock),
        TEST(an_actor_that_is_of_no_member_is_closed),
        TEST(an_actor_is_not_closed_by_a_report_of_before_its_last_write),
        TEST(an_actor_is_not_closed_by_a_report_that_was_long_on_its_way),
        TEST(an_actor_is_not_closed_by_who_has_not_heard_of_its_end),
        TEST(what_shows_a_closing_waits_for_the_disk),
        TEST(an_era_is_not_forgotten_under_a_member_whose_clock_is_full),
        TEST(an_idle_pair_says_little),
        cmocka_unit_test_setup_teardown(a_member_that_lost_its_disk_and_its_time_is_heard, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
