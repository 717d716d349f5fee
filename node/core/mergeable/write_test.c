/* What a member makes of a write, by its clock and by what it has heard of the operation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/mergeable/message.h"
#include "node/core/mergeable/pair.h"
#include "node/core/mergeable/pending.h"
#include "node/core/mergeable/read.h"
#include "node/core/mergeable/rounds.h"
#include "runtime/base/check.h"

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

/* One increment of operation 7 at that wall time of the member. */
static err count_one(struct pair *pair, uint32_t at, uint64_t wall_ms, uint64_t op_ms)
{
    struct merge_edit edit = { .path = SLICE_LITERAL("n"), .delta = 1 };
    struct merge_write write = { .key = pair->key,
                                 .policy = MERGE_POLICY_COUNTER,
                                 .durability = MERGE_ONE,
                                 .edit_count = 1,
                                 .edits = &edit,
                                 .op = 7,
                                 .op_ms = op_ms };
    struct merge_written written;
    struct merge_refusal refusal = { 0 };
    err e = merge_write(pair->replicas[at], wall_ms, &write, &written, &refusal);

    if (e != ERR_OK)
        assert_string_equal(refusal.field, e == ERR_UNAVAILABLE ? "clock" : "op_ms");
    pair_drain(pair, at);
    return e;
}

static void a_write_under_a_clock_that_is_ahead_expires_no_operation(void **state)
{
    struct pair *pair = *state;
    const uint64_t hour_ms = 3600000;

    assert_int_equal(count_one(pair, 0, pair->now_ms + hour_ms, pair->now_ms + hour_ms), ERR_OK);
    assert_true(pair->replicas[1]->hlc >> 16 >= pair->now_ms + hour_ms);
    assert_int_equal(count_one(pair, 1, pair->now_ms, pair->now_ms), ERR_OK);
    assert_int_equal(count_one(pair, 0, pair->now_ms, pair->now_ms), ERR_OK);
}

/* The others may have folded what the operation counted. */
static void a_clock_that_was_set_back_revives_no_operation(void **state)
{
    struct pair *pair = *state;
    uint64_t op_ms = pair->now_ms;

    for (uint32_t i = 0; i < 5; i++)
        pair_round(pair);
    assert_int_equal(count_one(pair, 1, op_ms, op_ms), ERR_UNAVAILABLE);
    pair_round(pair);
    assert_int_equal(count_one(pair, 1, pair->now_ms - 900, op_ms), ERR_CONFLICT);
}

/* It is written down before the disk has what it says, and sent when the disk has it. */
static void a_report_that_waited_for_the_disk_tells_of_no_wrong_clock(void **state)
{
    struct pair *pair = *state;
    struct merge_replica *slow = pair->replicas[0];

    pair->now_ms += MERGE_REPORT_MS;
    merge_tick(slow, pair->now_ms);
    pair->now_ms += 3000;
    for (uint32_t i = 0; i < slow->out.message_count; i++)
        merge_message_stamp(&slow->out.messages[i].bytes, pair->now_ms);
    pair_drain(pair, 0);
    assert_true(pair->replicas[1]->peers[0].told_ms == pair->now_ms - 3000);
    pair_write(pair, 1);
}

/* While a member was away each left a row at all others, without a limit. */
static uint64_t bytes_again(struct merge_replica *replica, uint64_t now_ms)
{
    uint64_t bytes = 0;

    merge_out_clear(&replica->out);
    merge_pending_tick(replica, now_ms);
    for (uint32_t i = 0; i < replica->out.message_count; i++)
        bytes += replica->out.messages[i].bytes.size;
    return bytes;
}

/* The peer's disk is behind: nothing comes of what is sent. */
static void large_writes_that_wait_are_sent_again_some_at_a_time(void **state)
{
    static uint8_t value[MERGE_VALUE_BYTES_MAX];
    struct pair *pair = *state;
    struct merge_replica *replica = pair->replicas[0];
    struct merge_edit edit = { .path = SLICE_LITERAL(""), .value = { value, sizeof value } };
    struct merge_write write = { .key = pair->key,
                                 .policy = MERGE_POLICY_LWW,
                                 .durability = MERGE_MAJORITY,
                                 .edit_count = 1,
                                 .edits = &edit };
    struct merge_written written;
    struct merge_refusal refusal = { 0 };

    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(merge_write(replica, pair->now_ms, &write, &written, &refusal), ERR_OK);
    uint64_t first = bytes_again(replica, pair->now_ms + MERGE_RESEND_MS);
    uint64_t second = bytes_again(replica, pair->now_ms + MERGE_RESEND_MS + 100);
    uint64_t third = bytes_again(replica, pair->now_ms + MERGE_RESEND_MS + 200);

    assert_in_range(first, MERGE_RESEND_BYTES, MERGE_RESEND_BYTES + 2 * sizeof value);
    assert_in_range(first + second + third, 20 * sizeof value, 21 * sizeof value);
    pair_drain(pair, 0);
}

static err write_large(struct pair *pair, uint32_t number, struct merge_refusal *refusal)
{
    static uint8_t value[MERGE_VALUE_BYTES_MAX];
    struct merge_edit edit = { .path = SLICE_LITERAL(""), .value = { value, sizeof value } };
    struct merge_written written;

    pair_name(pair, number);
    const struct merge_write write = { .key = pair->key,
                                       .policy = MERGE_POLICY_LWW,
                                       .durability = MERGE_MAJORITY,
                                       .edit_count = 1,
                                       .edits = &edit };

    return merge_write(pair->replicas[0], pair->now_ms, &write, &written, refusal);
}

/* The first ones were sent again and again, and the last ones never. */
static void what_waits_is_sent_again_in_turn(void **state)
{
    struct pair *pair = *state;
    struct merge_replica *replica = pair->replicas[0];
    struct merge_refusal refusal = { 0 };
    uint32_t sent[31] = { 0 };

    for (uint32_t i = 0; i < 30; i++)
        assert_int_equal(write_large(pair, i, &refusal), ERR_OK);
    for (uint32_t tick = 1; tick <= 20; tick++) {
        (void)bytes_again(replica, pair->now_ms + MERGE_RESEND_MS + tick * 200);
        for (uint32_t i = 0; i < replica->out.message_count; i++) {
            struct reader reader = reader_from(buf_slice(&replica->out.messages[i].bytes));
            struct merge_head head;
            struct merge_dot dot;

            assert_int_equal(merge_head_decode(&reader, &head), ERR_OK);
            assert_int_equal(merge_dot_decode(&reader, &dot), ERR_OK);
            sent[dot.counter]++;
        }
    }
    for (uint32_t i = 1; i <= 30; i++)
        assert_in_range(sent[i], 20 * 7 / 30, 20 * 9 / 30);
    pair_drain(pair, 0);
}

static void what_waits_has_a_limit_in_bytes(void **state)
{
    struct pair *pair = *state;
    struct merge_replica *replica = pair->replicas[0];
    struct merge_refusal refusal = { 0 };
    uint32_t waits = 0;
    uint64_t ticket;

    while (waits < MERGE_PENDING_MAX && write_large(pair, waits, &refusal) == ERR_OK)
        waits++;
    assert_int_equal(waits, MERGE_PENDING_BYTES_MAX / MERGE_VALUE_BYTES_MAX);
    assert_string_equal(refusal.field, "pending_bytes");
    assert_int_equal(refusal.limit, MERGE_PENDING_BYTES_MAX);
    assert_null(merge_store_find(&replica->store, pair->key)); /* Nothing was written. */
    pair_name(pair, 0);
    assert_int_equal(
        merge_read_majority(replica, pair->now_ms, pair->key, (struct slice){ 0 }, &ticket),
        ERR_FULL);
    pair_drain(pair, 0); /* All are acknowledged. */
    assert_int_equal(replica->pending_bytes, 0);
    assert_int_equal(write_large(pair, waits, &refusal), ERR_OK);
    pair_drain(pair, 0);
}

static void a_delete_of_what_there_is_not_leaves_no_row(void **state)
{
    struct pair *pair = *state;

    pair->mute[0] = true;
    for (uint64_t i = 0; i < 100; i++) {
        uint8_t name[8];
        struct merge_key *key;

        store_u64(name, i);
        assert_int_equal(merge_key_new(SLICE_LITERAL("player:1"), (struct slice){ name, 8 }, &key),
                         ERR_OK);
        const struct merge_edit part = { .path = SLICE_LITERAL("a"), .remove = true };
        const struct merge_write writes[] = {
            { .key = key, .policy = MERGE_POLICY_LWW, .durability = MERGE_ONE, .whole = true },
            { .key = key,
              .policy = MERGE_POLICY_MERGE,
              .durability = MERGE_ONE,
              .edit_count = 1,
              .edits = &part },
        };
        struct merge_written written;
        struct merge_refusal refusal = { 0 };

        for (size_t j = 0; j < ARRAY_SIZE(writes); j++)
            assert_int_equal(
                merge_write(pair->replicas[0], pair->now_ms, &writes[j], &written, &refusal),
                ERR_OK);
        pair_drain(pair, 0);
        merge_key_unref(key);
    }
    assert_int_equal(pair->replicas[0]->store.count, 0);
    pair->mute[0] = false;
    pair_round(pair);
    assert_int_equal(pair->replicas[1]->store.count, 0);
    assert_true(mclock_includes(&pair->replicas[1]->clock, &pair->replicas[0]->clock));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_write_under_a_clock_that_is_ahead_expires_no_operation),
        TEST(a_report_that_waited_for_the_disk_tells_of_no_wrong_clock),
        TEST(large_writes_that_wait_are_sent_again_some_at_a_time),
        TEST(what_waits_is_sent_again_in_turn),
        TEST(what_waits_has_a_limit_in_bytes),
        TEST(a_delete_of_what_there_is_not_leaves_no_row),
        TEST(a_clock_that_was_set_back_revives_no_operation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
