/* Properties of merging, by random histories, and the examples of the papers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "node/core/mergeable/policy.h"

#define SIDES 3u

static uint64_t random_state;

static uint64_t next(uint64_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % below;
}

struct side {
    struct merge_record record;
    uint64_t counter;
};

static void write_one(struct side *side, uint64_t actor, enum merge_policy policy)
{
    static const char *const paths[] = { "a", "b", "a/x" };
    struct merge_edit edit = { .path = slice_from_text(
                                   policy == MERGE_POLICY_VECTOR ? "" : paths[next(3)]),
                               .value = slice_from_text("v"),
                               .remove = next(3) == 0,
                               .delta = (int64_t)next(9) - 4 };
    struct causal seen = { 0 };
    struct merge_edits edits = { .count = 1,
                                 .list = &edit,
                                 .whole = next(8) == 0,
                                 .dot = { actor, ++side->counter },
                                 .hlc = 1 + next(5) };

    causal_copy(&seen, &side->record.context);
    edits.seen = next(2) == 0 ? &seen : NULL;
    side->record.policy = policy;
    merge_edits_apply(&side->record, &edits);
    causal_deinit(&seen);
}

static void joined(struct merge_record *to, const struct merge_record *a,
                   const struct merge_record *b)
{
    merge_record_copy(to, a);
    (void)merge_record_join(to, b);
}

static void random_sides(struct side *sides, enum merge_policy policy)
{
    for (uint32_t step = 0; step < 12; step++) {
        uint64_t at = next(SIDES), from = next(SIDES);

        if (next(3) == 0)
            (void)merge_record_join(&sides[at].record, &sides[from].record);
        else if (next(20) == 0)
            merge_record_deinit(&sides[at].record), sides[at].counter += 100;
        else
            write_one(&sides[at], at + 1, policy);
    }
    if (next(4) == 0)
        sides[next(SIDES)].record.erasure = 1;
}

static void merging_is_associative_commutative_and_idempotent(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 8000; round++) {
        struct side sides[SIDES] = { 0 };
        struct merge_record ab = { 0 }, ba = { 0 }, bc = { 0 }, left = { 0 }, right = { 0 };
        const struct merge_record *a = &sides[0].record, *b = &sides[1].record;

        random_state = round;
        random_sides(sides, (enum merge_policy)(1 + round % (MERGE_POLICY_COUNT - 1)));
        joined(&ab, a, b);
        joined(&ba, b, a);
        assert_true(merge_record_equal(&ab, &ba, true));
        joined(&bc, b, &sides[2].record);
        joined(&left, &ab, &sides[2].record);
        joined(&right, a, &bc);
        assert_true(merge_record_equal(&left, &right, true));
        assert_false(merge_record_join(&left, &right));
        assert_false(merge_record_join(&left, a));
        merge_record_deinit(&ab);
        merge_record_deinit(&ba);
        merge_record_deinit(&bc);
        merge_record_deinit(&left);
        merge_record_deinit(&right);
        for (uint32_t i = 0; i < SIDES; i++)
            merge_record_deinit(&sides[i].record);
    }
}

/* Stripped by a clock and filled with the same one, a record says what it said and what the clock
 * does. */
static void a_stripped_context_fills_again(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 4000; round++) {
        struct side sides[SIDES] = { 0 };
        struct mclock clock = { 0 };
        struct causal full = { 0 };
        struct merge_record *record = &sides[0].record;

        random_state = round;
        random_sides(sides, MERGE_POLICY_MERGE);
        for (uint32_t i = 0; i < 20; i++)
            assert_int_equal(mclock_add(&clock, (struct merge_dot){ 1 + next(SIDES), 1 + next(8) }),
                             ERR_OK);
        causal_copy(&full, &record->context);
        causal_fill(&full, &clock);
        causal_strip(&record->context, &clock);
        causal_fill(&record->context, &clock);
        assert_int_equal(causal_union(&full, &record->context), full.count);
        for (uint32_t i = 0; i < full.count; i++)
            assert_true(full.entries[i].upto == record->context.entries[i].upto);
        causal_deinit(&full);
        mclock_deinit(&clock);
        for (uint32_t i = 0; i < SIDES; i++)
            merge_record_deinit(&sides[i].record);
    }
}

/* A replica: its record with a full context, the same as a row that is stripped of its clock, that
 * clock, and the dots of this record alone. Other records have dots of the same actors. */
struct replica {
    struct side full;
    struct merge_record row;
    struct mclock clock, dots;
};

static void write_both(struct replica *replica, uint64_t actor, enum merge_policy policy)
{
    struct side row = { .record = replica->row, .counter = replica->full.counter };
    uint64_t random = random_state;

    write_one(&replica->full, actor, policy);
    random_state = random; /* The same once more. */
    causal_fill(&row.record.context, &replica->clock);
    write_one(&row, actor, policy);
    replica->row = row.record;
    const struct merge_dot dot = { actor, replica->full.counter };

    assert_int_equal(mclock_add(&replica->clock, dot), ERR_OK);
    assert_int_equal(mclock_add(&replica->dots, dot), ERR_OK);
    causal_strip(&replica->row.context, &replica->clock);
}

/* This record comes alone, or with it all that the peer has. */
static void take_in(struct replica *replica, const struct replica *peer, bool all)
{
    struct merge_record theirs = { 0 };

    (void)merge_record_join(&replica->full.record, &peer->full.record);
    merge_record_copy(&theirs, &peer->row);
    causal_fill(&theirs.context, &peer->clock);
    causal_fill(&replica->row.context, &replica->clock);
    (void)merge_record_join(&replica->row, &theirs);
    merge_record_deinit(&theirs);
    assert_int_equal(
        mclock_join(&replica->clock, all ? &peer->clock : &peer->dots, MCLOCK_CLOSE_AGREED),
        ERR_OK);
    assert_int_equal(mclock_join(&replica->dots, &peer->dots, MCLOCK_CLOSE_AGREED), ERR_OK);
    causal_strip(&replica->row.context, &replica->clock);
}

static void rows_that_are_stripped_merge_like_full_ones(void **state)
{
    uint32_t stripped = 0;
    (void)state;

    for (uint32_t round = 0; round < 8000; round++) {
        struct replica replicas[SIDES] = { 0 };

        random_state = round;
        for (uint32_t step = 0; step < 25; step++) {
            uint64_t at = next(SIDES), from = next(SIDES), die = next(4);
            struct replica *replica = &replicas[at];

            if (die == 0) { /* A write of another record. */
                struct merge_dot dot = { at + 1, ++replica->full.counter };

                assert_int_equal(mclock_add(&replica->clock, dot), ERR_OK);
            } else if (die == 1) {
                write_both(replica, at + 1,
                           (enum merge_policy)(1 + round % (MERGE_POLICY_COUNT - 1)));
            } else if (from != at) {
                take_in(replica, &replicas[from], die == 2);
            }
            assert_true(merge_record_equal(&replica->full.record, &replica->row, false));
            stripped += replica->row.count > 0 && causal_is_empty(&replica->row.context);
        }
        for (uint32_t i = 0; i < SIDES; i++) {
            merge_record_deinit(&replicas[i].full.record);
            merge_record_deinit(&replicas[i].row);
            mclock_deinit(&replicas[i].clock);
            mclock_deinit(&replicas[i].dots);
        }
    }
    assert_true(stripped > 1000);
}

/* Dotted version vectors (Preguica et al. 2010): v is written; two clients that saw v write w and x
 * at one server. Both stay: {(r,2), (r,3)} of context r:3; a third that saw w alone replaces just
 * w. */
static void two_clients_of_one_server_are_siblings(void **state)
{
    struct merge_record record = { .policy = MERGE_POLICY_VECTOR };
    struct causal_entry one = { 7, 1 }, two = { 7, 2 };
    struct causal saw_v = { .count = 1, .entries = &one }, saw_w = { .count = 1, .entries = &two };
    struct merge_edit edit = { .value = slice_from_text("v") };
    struct merge_edits edits = { .count = 1, .list = &edit, .dot = { 7, 1 }, .hlc = 1 };
    (void)state;

    merge_edits_apply(&record, &edits);
    edits.seen = &saw_v;
    edits.dot.counter = 2;
    merge_edits_apply(&record, &edits);
    edits.dot.counter = 3;
    merge_edits_apply(&record, &edits);
    assert_int_equal(record.count, 2);
    assert_true(record.cells[0]->dot.counter == 2 && record.cells[1]->dot.counter == 3);
    edits.seen = &saw_w;
    edits.dot.counter = 4;
    merge_edits_apply(&record, &edits);
    assert_int_equal(record.count, 2);
    assert_true(record.cells[0]->dot.counter == 3 && record.cells[1]->dot.counter == 4);
    merge_record_deinit(&record);
}

/* Node-wide clocks (Goncalves et al. 2015): a base with gaps above it, {3 -> base 3, dots 5 and 6};
 * the missing 4 lets the base rise to 6. */
static void a_gap_that_closes_raises_the_base(void **state)
{
    struct mclock clock = { 0 };
    static const uint64_t counters[] = { 1, 2, 3, 5, 6 };
    (void)state;

    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(mclock_add(&clock, (struct merge_dot){ 3, counters[i] }), ERR_OK);
    assert_true(mclock_floor(&clock, 3) == 3);
    assert_true(mclock_holds(&clock, (struct merge_dot){ 3, 5 }));
    assert_false(mclock_holds(&clock, (struct merge_dot){ 3, 4 }));
    assert_int_equal(mclock_add(&clock, (struct merge_dot){ 3, 4 }), ERR_OK);
    assert_true(mclock_floor(&clock, 3) == 6);
    assert_int_equal(mclock_add(&clock, (struct merge_dot){ 3, 7 + MCLOCK_BITS_MAX }), ERR_FULL);
    mclock_deinit(&clock);
}

/* Whatever stands on a disk or comes by the network is decoded or refused, never trusted. */
static void rotten_bytes_are_refused_or_sound(void **state)
{
    uint32_t refused = 0;
    (void)state;

    for (uint32_t round = 0; round < 4000; round++) {
        struct side sides[SIDES] = { 0 };
        struct merge_record again = { 0 };
        struct buf bytes = { 0 };

        random_state = round;
        random_sides(sides, MERGE_POLICY_SET);
        merge_record_encode(&sides[0].record, &bytes);
        struct reader reader = reader_from(buf_slice(&bytes));

        assert_int_equal(merge_record_decode(&reader, &again), ERR_OK);
        assert_int_equal(reader_finish(&reader), ERR_OK);
        assert_true(merge_record_equal(&again, &sides[0].record, true));
        merge_record_deinit(&again);
        bytes.data[next(bytes.size)] ^= (uint8_t)(1u << next(8));
        reader = reader_from((struct slice){ bytes.data, bytes.size - next(2) });
        err e = merge_record_decode(&reader, &again);

        assert_true(e == ERR_OK || e == ERR_CORRUPT);
        refused += e == ERR_CORRUPT;
        merge_record_deinit(&again);
        buf_deinit(&bytes);
        for (uint32_t i = 0; i < SIDES; i++)
            merge_record_deinit(&sides[i].record);
    }
    assert_true(refused > 100);
}

/* The second byte is the policy: NONE is that of an empty record alone. */
static void a_cell_without_a_policy_is_refused(void **state)
{
    struct merge_record record = { .policy = MERGE_POLICY_SET }, again = { 0 };
    struct buf bytes = { 0 };

    (void)state;
    merge_record_encode(&record, &bytes);
    bytes.data[1] = MERGE_POLICY_NONE;
    struct reader reader = reader_from(buf_slice(&bytes));
    assert_int_equal(merge_record_decode(&reader, &again), ERR_OK);
    merge_record_deinit(&again);
    merge_record_add(&record,
                     merge_cell_new(&(struct merge_cell_form){ .path = SLICE_LITERAL("a"),
                                                               .value = SLICE_LITERAL("1"),
                                                               .dot = { 3, 1 },
                                                               .hlc = UINT64_C(1) << 16 }));
    for (int policy = MERGE_POLICY_SET; policy >= MERGE_POLICY_NONE; policy -= MERGE_POLICY_SET) {
        buf_clear(&bytes);
        merge_record_encode(&record, &bytes);
        bytes.data[1] = (uint8_t)policy;
        reader = reader_from(buf_slice(&bytes));
        assert_int_equal(merge_record_decode(&reader, &again),
                         policy == MERGE_POLICY_NONE ? ERR_CORRUPT : ERR_OK);
        if (policy != MERGE_POLICY_NONE)
            merge_record_deinit(&again);
    }
    buf_deinit(&bytes);
    merge_record_deinit(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merging_is_associative_commutative_and_idempotent),
        cmocka_unit_test(a_stripped_context_fills_again),
        cmocka_unit_test(rows_that_are_stripped_merge_like_full_ones),
        cmocka_unit_test(two_clients_of_one_server_are_siblings),
        cmocka_unit_test(a_gap_that_closes_raises_the_base),
        cmocka_unit_test(a_cell_without_a_policy_is_refused),
        cmocka_unit_test(rotten_bytes_are_refused_or_sound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
