#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/player/meta.h"
#include "runtime/base/check.h"

static void fill(struct meta *meta)
{
    meta_init(meta);
    meta->applied_index = 7;
    meta->applied_dot = (struct dot){ 2, 1, 3 };
    meta->outcome_hash.bytes[5] = 9;
    meta->owner_ms = 99;
    vector_append(&meta->vector, 1, 4);
    vector_append(&meta->vector, 2, 1);
    meta->membership = (struct membership){ .config = 5, .count = 3, .members = { 1, 2, 4 } };
    meta->floor_ms = 50;
    meta->operation_count = 11;
    meta->session_count = 2;
    meta->lowest_live = (struct incarnation){ 1, 100 };
    meta->expired = mem_alloc(2 * sizeof *meta->expired);
    meta->expired[0] = (struct expired_range){ { 1, 150 }, { 1, 150 } };
    meta->expired[1] = (struct expired_range){ { 2, 3 }, { 2, 3 } };
    meta->expired_count = 2;
    meta->policy.version = 4;
    meta->policy.currency_count = 2;
    memcpy(meta->policy.currencies[0].name, "gems", 5);
    memcpy(meta->policy.currencies[1].name, "gold", 5);
    meta->policy.currencies[1].min_balance = -5;
    meta->policy.currencies[1].max_balance = AMOUNT_MAX;
    assert_true(meta_quarantine(meta, SLICE_LITERAL("bob"), SLICE_LITERAL("because"), 77));
    meta->use.kind = USE_RESTORING;
    meta->use.restore_id.bytes[15] = 3;
    meta->use.parts = 6;
    row_digest_add(&meta->use.rows, SLICE_LITERAL("key"), SLICE_LITERAL("value"));
}

#define USE_BYTES  (1u + 16u + 4u * 8u)
#define TOLD_BYTES 1u

static void a_row_of_before_restores_is_not_of_an_empty_shard(void **state)
{
    struct meta meta = { 0 };
    struct meta read = { 0 };
    struct buf bytes = { 0 };
    (void)state;

    fill(&meta);
    meta_encode(&meta, &bytes);
    assert_int_equal(bytes.data[0], 6);
    bytes.data[0] = 4;
    bytes.size -= USE_BYTES + TOLD_BYTES;
    assert_int_equal(meta_decode(buf_slice(&bytes), &read), ERR_OK);
    assert_int_equal(read.use.kind, USE_SERVING);
    assert_int_equal(read.use.parts, 0);
    assert_false(read.inboxes_told);
    buf_deinit(&bytes);
    meta_deinit(&meta);
    meta_deinit(&read);
}

/* Written as before while there are none, so that a program of apply version 4 reads it. */
static void keys_are_counted_in_rows_that_have_some(void **state)
{
    struct meta meta = { 0 };
    struct meta read = { 0 };
    struct buf bytes = { 0 };
    (void)state;

    fill(&meta);
    meta_encode(&meta, &bytes);
    assert_int_equal(bytes.data[0], 6);
    meta.key_count = 12;
    buf_clear(&bytes);
    meta_encode(&meta, &bytes);
    assert_int_equal(bytes.data[0], 7);
    assert_int_equal(meta_decode(buf_slice(&bytes), &read), ERR_OK);
    assert_int_equal(read.key_count, 12);
    assert_true(read.inboxes_told);
    bytes.size--;
    assert_int_equal(meta_decode(buf_slice(&bytes), &read), ERR_CORRUPT);
    buf_deinit(&bytes);
    meta_deinit(&meta);
    meta_deinit(&read);
}

/* The row of a shard that a later program wrote is no damage: that program is to be started again.
 */
static void a_row_of_a_later_build_is_told_from_damage(void **state)
{
    struct meta meta = { 0 };
    struct meta read = { 0 };
    struct buf bytes = { 0 };
    (void)state;

    fill(&meta);
    meta_encode(&meta, &bytes);
    bytes.data[0] = 12;
    assert_int_equal(meta_decode(buf_slice(&bytes), &read), ERR_TOO_NEW);
    bytes.data[0] = 3;
    assert_int_equal(meta_decode(buf_slice(&bytes), &read), ERR_CORRUPT);
    assert_int_equal(meta_decode((struct slice){ bytes.data, 0 }, &read), ERR_CORRUPT);
    buf_deinit(&bytes);
    meta_deinit(&meta);
    meta_deinit(&read);
}

/* Its channels never noted what they decided: none of it may be taken for new. */
static void a_row_of_an_earlier_build_knows_nothing_of_its_inboxes(void **state)
{
    struct meta meta = { 0 };
    struct meta read = { 0 };
    struct buf bytes = { 0 };
    (void)state;

    fill(&meta);
    assert_true(meta.inboxes_told);
    meta_encode(&meta, &bytes);
    assert_int_equal(meta_decode(buf_slice(&bytes), &read), ERR_OK);
    assert_true(read.inboxes_told);
    bytes.data[0] = 5;
    bytes.size -= TOLD_BYTES;
    assert_int_equal(meta_decode(buf_slice(&bytes), &read), ERR_OK);
    assert_int_equal(read.use.kind, USE_RESTORING);
    assert_false(read.inboxes_told);
    buf_clear(&bytes);
    meta_encode(&read, &bytes);
    assert_int_equal(meta_decode(buf_slice(&bytes), &read), ERR_OK);
    assert_false(read.inboxes_told);
    buf_deinit(&bytes);
    meta_deinit(&meta);
    meta_deinit(&read);
}

static void meta_reads_back_as_it_was_written_and_no_prefix_of_it_does(void **state)
{
    struct meta meta = { 0 };
    struct meta read = { 0 };
    struct buf bytes = { 0 };
    struct buf again = { 0 };
    (void)state;

    fill(&meta);
    meta_encode(&meta, &bytes);
    assert_int_equal(meta_decode(buf_slice(&bytes), &read), ERR_OK);
    meta_encode(&read, &again);
    assert_true(slice_equal(buf_slice(&bytes), buf_slice(&again)));
    for (size_t cut = 0; cut < bytes.size; cut++)
        assert_int_equal(meta_decode((struct slice){ bytes.data, cut }, &read), ERR_CORRUPT);
    assert_int_equal(read.applied_index, 7);
    buf_deinit(&bytes);
    buf_deinit(&again);
    meta_deinit(&meta);
    meta_deinit(&read);
}

static void servers_are_expired_below_the_lowest_live_or_one_by_one(void **state)
{
    struct meta meta = { 0 };
    (void)state;

    fill(&meta);
    assert_true(meta_is_expired(&meta, (struct incarnation){ 1, 99 }));
    assert_false(meta_is_expired(&meta, (struct incarnation){ 1, 100 }));
    assert_true(meta_is_expired(&meta, (struct incarnation){ 1, 150 }));
    assert_false(meta_is_expired(&meta, (struct incarnation){ 1, 151 }));
    assert_true(meta_is_expired(&meta, (struct incarnation){ 2, 3 }));
    assert_false(meta_is_expired(&meta, (struct incarnation){ 2, 4 }));
    meta_deinit(&meta);
}

static void ranges_of_expired_servers_read_back(void **state)
{
    struct meta meta = { 0 }, read = { 0 };
    struct buf bytes = { 0 };
    (void)state;

    fill(&meta);
    meta.expired[0].first = (struct incarnation){ 1, 120 };
    assert_true(meta_is_expired(&meta, (struct incarnation){ 1, 120 }));
    assert_true(meta_is_expired(&meta, (struct incarnation){ 1, 149 }));
    assert_false(meta_is_expired(&meta, (struct incarnation){ 1, 119 }));
    meta_encode(&meta, &bytes);
    assert_int_equal(meta_decode(buf_slice(&bytes), &read), ERR_OK);
    assert_int_equal(read.expired_count, 2);
    assert_true(meta_is_expired(&read, (struct incarnation){ 1, 120 }));
    assert_false(meta_is_expired(&read, (struct incarnation){ 1, 119 }));
    assert_false(meta_is_expired(&read, (struct incarnation){ 2, 2 }));
    for (size_t cut = 0; cut < bytes.size; cut++)
        assert_int_equal(meta_decode((struct slice){ bytes.data, cut }, &read), ERR_CORRUPT);
    meta.expired[1].first = (struct incarnation){ 1, 150 }; /* Not apart. */
    buf_clear(&bytes);
    meta_encode(&meta, &bytes);
    assert_int_equal(meta_decode(buf_slice(&bytes), &read), ERR_CORRUPT);
    buf_deinit(&bytes);
    meta_deinit(&meta);
    meta_deinit(&read);
}

static void a_row_of_ranges_has_some(void **state)
{
    struct meta meta = { 0 }, read = { 0 };
    struct buf bytes = { 0 };
    (void)state;

    fill(&meta);
    meta.review_count = 1;
    meta_encode(&meta, &bytes);
    assert_int_equal(meta_decode(buf_slice(&bytes), &read), ERR_OK);
    assert_int_equal(bytes.data[0], 9);
    bytes.data[0] = 10;
    for (uint32_t i = 0; i < meta.expired_count; i++) {
        buf_put_u64(&bytes, meta.expired[i].first.generation);
        buf_put_u64(&bytes, meta.expired[i].first.revision);
    }
    assert_int_equal(meta_decode(buf_slice(&bytes), &read), ERR_CORRUPT);
    buf_deinit(&bytes);
    meta_deinit(&meta);
    meta_deinit(&read);
}

static void check_read(const struct meta *meta, uint8_t version)
{
    struct meta read = { 0 };
    struct buf bytes = { 0 };

    meta_encode(meta, &bytes);
    assert_int_equal(bytes.data[0], version);
    assert_int_equal(meta_decode(buf_slice(&bytes), &read), ERR_OK);
    assert_int_equal(read.policy.generation, meta->policy.generation);
    assert_int_equal(read.policy.dropped_min, meta->policy.dropped_min);
    for (size_t cut = 0; cut < bytes.size; cut++)
        assert_int_equal(meta_decode((struct slice){ bytes.data, cut }, &read), ERR_CORRUPT);
    buf_deinit(&bytes);
    meta_deinit(&read);
}

/* Earlier builds read the row of a cluster whose etcd was never restored. */
static void a_policy_s_past_is_in_rows_that_have_one(void **state)
{
    struct meta meta = { 0 }, read = { 0 };
    struct buf bytes = { 0 };
    (void)state;

    fill(&meta);
    check_read(&meta, 6);
    meta.policy.generation = 3;
    check_read(&meta, 11);
    meta.policy.dropped_min = -7;
    check_read(&meta, 11);
    meta.policy.generation = 1;
    check_read(&meta, 11);
    meta_encode(&meta, &bytes);
    memset(bytes.data + bytes.size - 16, 0,
           8); /* Nothing that an earlier version could not tell. */
    assert_int_equal(meta_decode(buf_slice(&bytes), &read), ERR_CORRUPT);
    meta.policy.dropped_min = 0;
    check_read(&meta, 6);
    meta.versions_above = 9;
    check_read(&meta, 11);
    meta.policy.dropped_min = 7;
    meta.policy.generation = 2;
    buf_clear(&bytes);
    meta_encode(&meta, &bytes);
    assert_int_equal(meta_decode(buf_slice(&bytes), &read), ERR_CORRUPT);
    buf_deinit(&bytes);
    meta_deinit(&meta);
}

static void currency_is(const struct policy *policy, const char *name, int64_t lowest_min)
{
    assert_int_equal(policy_find_currency(policy, slice_from_text(name))->lowest_min, lowest_min);
}

static void debts_outlive_the_currencies_that_allowed_them(void **state)
{
    struct policy with = policy_default(), without = policy_default(), again;
    (void)state;

    with.currency_count = 1;
    memcpy(with.currencies[0].name, "debt", 5);
    again = with;
    with.currencies[0].min_balance = with.currencies[0].lowest_min = -9;
    policy_keep_lowest(&with, &without);
    assert_int_equal(without.dropped_min, -9);
    policy_keep_lowest(&without, &again);
    assert_int_equal(again.dropped_min, -9);
    currency_is(&again, "debt", -9);
    with.currencies[0].lowest_min = -20;
    policy_keep_lowest(&with, &again);
    assert_int_equal(again.dropped_min, -9); /* It did not go. */
    currency_is(&again, "debt", -20);
}

static void the_quarantined_are_found_released_and_bounded(void **state)
{
    struct meta meta = { 0 };
    char name[16];
    (void)state;

    fill(&meta);
    assert_false(meta_quarantine(&meta, SLICE_LITERAL("bob"), SLICE_LITERAL("again"), 78));
    assert_true(meta_quarantine(&meta, SLICE_LITERAL("ann"), SLICE_LITERAL("x"), 79));
    assert_true(meta_quarantine(&meta, SLICE_LITERAL("zoe"), SLICE_LITERAL("y"), 80));
    assert_string_equal(meta_find_quarantined(&meta, SLICE_LITERAL("bob"))->reason, "because");
    assert_null(meta_find_quarantined(&meta, SLICE_LITERAL("bo")));
    meta_release(&meta, meta_find_quarantined(&meta, SLICE_LITERAL("bob")));
    assert_null(meta_find_quarantined(&meta, SLICE_LITERAL("bob")));
    assert_string_equal(meta_find_quarantined(&meta, SLICE_LITERAL("ann"))->reason, "x");
    assert_string_equal(meta_find_quarantined(&meta, SLICE_LITERAL("zoe"))->reason, "y");
    for (uint32_t i = 2; i < QUARANTINE_MAX; i++) {
        (void)snprintf(name, sizeof name, "p%u", i);
        assert_true(meta_quarantine(&meta, slice_from_text(name), SLICE_LITERAL("z"), 1));
    }
    assert_false(meta_quarantine(&meta, SLICE_LITERAL("one more"), SLICE_LITERAL("z"), 1));
    meta_deinit(&meta);
}

static void currencies_are_found_by_their_whole_name(void **state)
{
    struct meta meta = { 0 };
    (void)state;

    fill(&meta);
    assert_string_equal(policy_find_currency(&meta.policy, SLICE_LITERAL("gold"))->name, "gold");
    assert_string_equal(policy_find_currency(&meta.policy, SLICE_LITERAL("gems"))->name, "gems");
    assert_null(policy_find_currency(&meta.policy, SLICE_LITERAL("gol")));
    assert_null(policy_find_currency(&meta.policy, SLICE_LITERAL("golds")));
    assert_null(policy_find_currency(&meta.policy, SLICE_LITERAL("")));
    meta_deinit(&meta);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meta_reads_back_as_it_was_written_and_no_prefix_of_it_does),
        cmocka_unit_test(a_row_of_before_restores_is_not_of_an_empty_shard),
        cmocka_unit_test(keys_are_counted_in_rows_that_have_some),
        cmocka_unit_test(a_row_of_a_later_build_is_told_from_damage),
        cmocka_unit_test(a_row_of_an_earlier_build_knows_nothing_of_its_inboxes),
        cmocka_unit_test(servers_are_expired_below_the_lowest_live_or_one_by_one),
        cmocka_unit_test(ranges_of_expired_servers_read_back),
        cmocka_unit_test(a_row_of_ranges_has_some),
        cmocka_unit_test(a_policy_s_past_is_in_rows_that_have_one),
        cmocka_unit_test(debts_outlive_the_currencies_that_allowed_them),
        cmocka_unit_test(the_quarantined_are_found_released_and_bounded),
        cmocka_unit_test(currencies_are_found_by_their_whole_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
