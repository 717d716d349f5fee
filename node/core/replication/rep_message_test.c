#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/entry/start.h"
#include "node/core/replication/rep_message.h"
#include "runtime/base/check.h"

static struct rep_message full_message(void)
{
    struct rep_message m = {
        .type = REP_MSG_APPEND,
        .shard = 9,
        .generation = 1,
        .config = 2,
        .epoch = 3,
        .owner = 4,
        .cut_id = 5,
        .refused = true,
        .votes = true,
        .prev_index = 6,
        .prev_hash = { { 7 } },
        .commit_index = 8,
        .retain_index = 9,
        .round = 10,
        .matched_index = 11,
        .applied_index = 12,
        .outcome = { { 13 } },
        .last_dot = { 14, 15, 16 },
        .apply_version = 17,
        .entry_count = 2,
    };

    vector_append(&m.vector, 3, 4);
    m.entries = mem_zalloc(2 * sizeof m.entries[0]);
    m.entries[0] =
        entry_new(ENTRY_OP,
                  &(struct entry_head){
                      .index = 7, .dot = { 3, 4, 1 }, .owner_ms = 1, .prev_hash = m.prev_hash },
                  SLICE_LITERAL("a"));
    m.entries[1] = entry_new(
        ENTRY_CHECK,
        &(struct entry_head){
            .index = 8, .dot = { 3, 4, 2 }, .owner_ms = 1, .prev_hash = m.entries[0]->hash },
        SLICE_LITERAL(""));
    return m;
}

static void every_field_comes_back(void **state)
{
    struct rep_message m = full_message();
    struct rep_message back = { 0 };
    struct buf one = { 0 };
    struct buf two = { 0 };
    (void)state;

    rep_message_encode(&m, &one);
    assert_int_equal(rep_message_decode(buf_slice(&one), &back), ERR_OK);
    assert_true(back.refused && back.votes && back.round == 10 && back.apply_version == 17);
    assert_true(back.entry_count == 2 && back.last_dot.counter == 16);
    assert_int_equal(vector_compare(&m.vector, &back.vector), VECTOR_EQUAL);
    rep_message_encode(&back, &two);
    assert_true(slice_equal(buf_slice(&one), buf_slice(&two)));
    rep_message_deinit(&m);
    rep_message_deinit(&back);
    buf_deinit(&one);
    buf_deinit(&two);
}

static void part_of_a_snapshot_comes_back_with_its_body(void **state)
{
    struct rep_message m = { .type = REP_MSG_SNAPSHOT_PART,
                             .shard = 2,
                             .snapshot = 77,
                             .part = 5,
                             .last = true,
                             .chain = { { 9 } } };
    struct rep_message back = { 0 };
    struct buf bytes = { 0 };
    (void)state;

    buf_append(&m.body, "rows", 4);
    rep_message_encode(&m, &bytes);
    assert_int_equal(rep_message_decode(buf_slice(&bytes), &back), ERR_OK);
    assert_true(back.type == REP_MSG_SNAPSHOT_PART && back.snapshot == 77 && back.part == 5);
    assert_true(back.last && !back.behind && back.chain.bytes[0] == 9);
    assert_true(slice_equal(buf_slice(&back.body), SLICE_LITERAL("rows")));
    rep_message_deinit(&back);
    bytes.size--;
    assert_int_equal(rep_message_decode(buf_slice(&bytes), &back), ERR_CORRUPT);
    rep_message_deinit(&m);
    buf_deinit(&bytes);
}

static void cut_or_extended_bytes_are_refused_without_a_leak(void **state)
{
    struct rep_message m = full_message();
    struct rep_message back = { 0 };
    struct buf buf = { 0 };
    (void)state;

    rep_message_encode(&m, &buf);
    for (size_t size = 0; size < buf.size; size++)
        assert_int_equal(rep_message_decode((struct slice){ buf.data, size }, &back), ERR_CORRUPT);
    buf_put_u8(&buf, 0);
    assert_int_equal(rep_message_decode(buf_slice(&buf), &back), ERR_CORRUPT);
    assert_null(back.entries);
    rep_message_deinit(&m);
    buf_deinit(&buf);
}

/* An owner of epoch 5 sends on what owners before it wrote. */
static struct rep_message message_over_an_epoch(void)
{
    struct start start = { .base_index = 11,
                           .base_hash = { { 1 } },
                           .membership = { .config = 1 } };
    struct rep_message m = { .type = REP_MSG_APPEND,
                             .epoch = 5,
                             .owner = 2,
                             .prev_index = 10,
                             .prev_hash = { { 9 } },
                             .entry_count = 3 };
    struct buf body = { 0 };

    start_encode(&start, &body);
    m.entries = mem_zalloc(3 * sizeof m.entries[0]);
    m.entries[0] =
        entry_new(ENTRY_OP,
                  &(struct entry_head){
                      .index = 11, .dot = { 4, 1, 70 }, .owner_ms = 100, .prev_hash = m.prev_hash },
                  SLICE_LITERAL("of the epoch before"));
    m.entries[1] = entry_new(
        ENTRY_START,
        &(struct entry_head){
            .index = 12, .dot = { 5, 2, 1 }, .owner_ms = 100, .prev_hash = m.entries[0]->hash },
        buf_slice(&body));
    m.entries[2] = entry_new(
        ENTRY_OP,
        &(struct entry_head){
            .index = 13, .dot = { 5, 2, 2 }, .owner_ms = 5000, .prev_hash = m.entries[1]->hash },
        SLICE_LITERAL("of this one"));
    buf_deinit(&body);
    return m;
}

static void entries_come_back_over_a_change_of_epochs(void **state)
{
    struct rep_message m = message_over_an_epoch();
    struct rep_message back = { 0 };
    struct buf buf = { 0 };
    (void)state;

    rep_message_encode(&m, &buf);
    assert_int_equal(rep_message_decode(buf_slice(&buf), &back), ERR_OK);
    assert_int_equal(back.entry_count, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(slice_equal(back.entries[i]->encoded, m.entries[i]->encoded));
    rep_message_deinit(&m);
    rep_message_deinit(&back);
    buf_deinit(&buf);
}

static void an_entry_that_follows_costs_little_more_than_its_body(void **state)
{
    struct rep_message m = full_message();
    struct buf two = { 0 };
    struct buf none = { 0 };
    (void)state;

    rep_message_encode(&m, &two);
    uint32_t count = m.entry_count;
    m.entry_count = 0;
    rep_message_encode(&m, &none);
    m.entry_count = count;
    assert_true(two.size - none.size <= 2 * 20 + 2);
    rep_message_deinit(&m);
    buf_deinit(&two);
    buf_deinit(&none);
}

static void a_flipped_bit_of_an_entry_is_refused(void **state)
{
    struct rep_message m = full_message();
    struct rep_message back = { 0 };
    struct buf buf = { 0 };
    (void)state;

    rep_message_encode(&m, &buf);
    for (size_t i = buf.size - 40; i < buf.size; i++) {
        buf.data[i] ^= 0x10;
        assert_int_equal(rep_message_decode(buf_slice(&buf), &back), ERR_CORRUPT);
        buf.data[i] ^= 0x10;
    }
    rep_message_deinit(&m);
    buf_deinit(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_comes_back),
        cmocka_unit_test(part_of_a_snapshot_comes_back_with_its_body),
        cmocka_unit_test(cut_or_extended_bytes_are_refused_without_a_leak),
        cmocka_unit_test(entries_come_back_over_a_change_of_epochs),
        cmocka_unit_test(an_entry_that_follows_costs_little_more_than_its_body),
        cmocka_unit_test(a_flipped_bit_of_an_entry_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
