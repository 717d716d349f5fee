#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/entry/entry.h"
#include "node/core/entry/start.h"
#include "runtime/base/check.h"

static struct entry *sword_entry(void)
{
    struct hash128 prev = { { 7 } };

    return entry_new(
        ENTRY_OP,
        &(struct entry_head){
            .index = 12, .dot = { 3, 2, 5 }, .owner_ms = 1700000000000u, .prev_hash = prev },
        SLICE_LITERAL("sword"));
}

static void epoch_outweighs_counter_in_the_order_of_dots(void **state)
{
    (void)state;
    assert_true(dot_compare((struct dot){ 2, 1, 900 }, (struct dot){ 3, 1, 1 }) < 0);
    assert_true(dot_compare((struct dot){ 3, 1, 2 }, (struct dot){ 3, 1, 1 }) > 0);
    assert_true(dot_compare((struct dot){ 3, 1, 2 }, (struct dot){ 3, 1, 2 }) == 0);
}

static void entry_comes_back_from_its_bytes(void **state)
{
    struct entry *a = sword_entry();
    struct entry *b = NULL;
    (void)state;

    assert_int_equal(entry_decode(a->encoded, &b), ERR_OK);
    assert_int_equal(b->kind, ENTRY_OP);
    assert_true(b->index == 12 && b->owner_ms == 1700000000000u);
    assert_true(dot_compare(a->dot, b->dot) == 0 && b->dot.owner == 2);
    assert_true(hash128_equal(a->hash, b->hash) && hash128_equal(a->prev_hash, b->prev_hash));
    assert_true(slice_equal(b->body, SLICE_LITERAL("sword")));
    entry_unref(a);
    entry_unref(b);
}

static void every_flipped_or_missing_byte_is_noticed(void **state)
{
    struct entry *a = sword_entry();
    struct entry *b = NULL;
    struct buf copy = { 0 };
    (void)state;

    for (size_t i = 0; i < a->encoded.size; i++) {
        buf_clear(&copy);
        buf_append(&copy, a->encoded.data, a->encoded.size);
        copy.data[i] ^= 0x40;
        assert_int_equal(entry_decode(buf_slice(&copy), &b), ERR_CORRUPT);
        assert_int_equal(entry_decode((struct slice){ a->encoded.data, i }, &b), ERR_CORRUPT);
    }
    assert_null(b);
    buf_deinit(&copy);
    entry_unref(a);
}

static void hash_depends_on_the_entry_before(void **state)
{
    struct hash128 one = { { 1 } };
    struct hash128 two = { { 2 } };
    struct dot dot = { 1, 1, 1 };
    struct entry *a =
        entry_new(ENTRY_OP, &(struct entry_head){ .index = 1, .dot = dot, .prev_hash = one },
                  SLICE_LITERAL("x"));
    struct entry *b =
        entry_new(ENTRY_OP, &(struct entry_head){ .index = 1, .dot = dot, .prev_hash = two },
                  SLICE_LITERAL("x"));
    (void)state;

    assert_false(hash128_equal(a->hash, b->hash));
    entry_unref(a);
    entry_unref(b);
}

static void start_comes_back_and_malformed_bytes_are_refused(void **state)
{
    struct start start = {
        .base_index = 2,
        .membership = { .config = 4,
                        .count = 3,
                        .members = { 1, 2, 9 },
                        .new_count = 1,
                        .new_members = { 5 } },
        .generation = 6,
        .apply_version = 7,
    };
    struct start back = { 0 };
    struct buf buf = { 0 };
    (void)state;

    vector_append(&start.base, 1, 1);
    vector_append(&start.base, 1, 1);
    start_encode(&start, &buf);
    assert_int_equal(start_decode(buf_slice(&buf), &back), ERR_OK);
    assert_true(back.base_index == 2 && back.generation == 6 && back.apply_version == 7);
    assert_true(membership_has(&back.membership, 9) && membership_has(&back.membership, 5));
    assert_false(membership_has(&back.membership, 4));
    for (size_t size = 0; size < buf.size; size++)
        assert_int_equal(start_decode((struct slice){ buf.data, size }, &back), ERR_CORRUPT);
    store_u64(buf.data, 3); /* base_index no longer agrees with the base vector. */
    assert_int_equal(start_decode(buf_slice(&buf), &back), ERR_CORRUPT);
    buf_deinit(&buf);
}

static void joint_phase_needs_both_majorities(void **state)
{
    struct membership plain = { .count = 3, .members = { 1, 2, 3 } };
    struct membership joint = {
        .count = 3, .members = { 1, 2, 3 }, .new_count = 3, .new_members = { 2, 3, 4 }
    };
    (void)state;

    assert_false(membership_quorum(&plain, 1, 0));
    assert_true(membership_quorum(&plain, 1 | 4, 0));
    assert_false(membership_quorum(&plain, 8 | 16, 0)); /* No such places. */
    assert_false(membership_quorum(&joint, 1 | 2, 1));
    assert_false(membership_quorum(&joint, 1, 1 | 4));
    assert_true(membership_quorum(&joint, 1 | 2, 1 | 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epoch_outweighs_counter_in_the_order_of_dots),
        cmocka_unit_test(entry_comes_back_from_its_bytes),
        cmocka_unit_test(every_flipped_or_missing_byte_is_noticed),
        cmocka_unit_test(hash_depends_on_the_entry_before),
        cmocka_unit_test(start_comes_back_and_malformed_bytes_are_refused),
        cmocka_unit_test(joint_phase_needs_both_majorities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
