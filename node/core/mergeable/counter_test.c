/* Counters against others that are never folded: whatever is folded where, all say the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "node/core/mergeable/counter.h"
#include "node/core/mergeable/policy.h"

#define SIDES 3u
#define NAME  SLICE_LITERAL("n")

static uint64_t random_state;

static uint64_t next(uint64_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % below;
}

struct side {
    struct merge_record record; /* What is folded. */
    struct merge_record plain;  /* What is not. */
    uint64_t actor, counter;
};

static uint64_t hlc_last;

static void write_both(struct side *side, const struct merge_edit *edit, bool whole, uint64_t op)
{
    struct merge_edits edits = { .count = whole ? 0 : 1,
                                 .list = edit,
                                 .whole = whole,
                                 .dot = { side->actor, ++side->counter },
                                 .hlc = ++hlc_last << 16,
                                 .op = op };

    side->record.policy = side->plain.policy = MERGE_POLICY_COUNTER;
    merge_edits_apply(&side->record, &edits);
    merge_edits_apply(&side->plain, &edits);
}

static int64_t sum_of(const struct merge_record *record)
{
    int64_t sum = 0;

    assert_int_equal(merge_counter_sum(record, NAME, 1, &sum), ERR_OK);
    return sum;
}

static bool covers_all(const struct causal *context, const struct causal *other)
{
    for (uint32_t i = 0; i < other->count; i++)
        if (!causal_covers(context,
                           (struct merge_dot){ other->entries[i].actor, other->entries[i].upto }))
            return false;
    return true;
}

static bool is_everywhere(void *user, struct merge_dot dot)
{
    const struct side *sides = user;
    bool everywhere = true;

    for (uint32_t i = 0; i < SIDES; i++)
        everywhere &= causal_covers(&sides[i].record.context, dot);
    return everywhere;
}

static uint16_t era_over;

/* An era is over when all sides write under later ones and all have its dots; it stays over. */
static void end_eras(const struct side *sides)
{
    uint16_t era = UINT16_MAX;

    for (uint32_t i = 0; i < SIDES; i++)
        era = merge_actor_era(sides[i].actor) < era ? merge_actor_era(sides[i].actor) : era;
    for (uint32_t i = 0; i < SIDES; i++)
        for (uint32_t j = 0; j < sides[i].record.context.count; j++) {
            const struct causal_entry *entry = &sides[i].record.context.entries[j];

            if (merge_actor_era(entry->actor) < era &&
                !is_everywhere((void *)(uintptr_t)sides,
                               (struct merge_dot){ entry->actor, entry->upto }))
                return;
        }
    era_over = era;
}

/* Each side hears late that an era is over, and how far the others' clocks are. */
static uint32_t fold(struct side *sides, uint32_t at)
{
    end_eras(sides);
    struct merge_folding folding = { .era = (uint16_t)next(era_over + 1u),
                                     .retried_ms = next(hlc_last + 2),
                                     .everywhere = is_everywhere,
                                     .user = sides };
    int64_t before = sum_of(&sides[at].record);

    for (uint32_t i = 0; i < SIDES; i++)
        if (!covers_all(&sides[at].record.context, &sides[i].record.context))
            return 0;
    bool folded = merge_counter_fold(&sides[at].record, &folding);

    assert_true(sum_of(&sides[at].record) == before);
    return folded;
}

static void step(struct side *sides, uint64_t *ops, uint32_t *folds)
{
    uint32_t at = (uint32_t)next(SIDES), from = (uint32_t)next(SIDES);
    struct merge_edit edit = { .path = NAME, .delta = (int64_t)next(20) - 7 };
    uint64_t die = next(23);

    if (die < 9) {
        (void)merge_record_join(&sides[at].record, &sides[from].record);
        (void)merge_record_join(&sides[at].plain, &sides[from].plain);
    } else if (die < 13) {
        *folds += fold(sides, at);
    } else if (die > 19) {
        sides[at].actor = merge_actor_make((uint16_t)(merge_actor_era(sides[at].actor) + 1), at);
        sides[at].counter = 0;
    } else if (die == 13) {
        edit.remove = true;
        write_both(&sides[at], &edit, next(2) == 0, 0);
    } else {
        /* Operations come again only while nothing of them is folded: the window of retries. */
        write_both(&sides[at], &edit, false, next(3) == 0 ? ++*ops : 0);
    }
    assert_true(sum_of(&sides[at].record) == sum_of(&sides[at].plain));
}

static void end(struct side *sides)
{
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t i = 0; i < SIDES; i++)
            for (uint32_t j = 0; j < SIDES; j++) {
                (void)merge_record_join(&sides[i].record, &sides[j].record);
                (void)merge_record_join(&sides[i].plain, &sides[j].plain);
            }
    struct merge_folding all = {
        .era = UINT16_MAX, .retried_ms = UINT64_MAX, .everywhere = is_everywhere, .user = sides
    };

    for (uint32_t i = 0; i < SIDES; i++) {
        (void)merge_counter_fold(&sides[i].record, &all);
        assert_true(sides[i].record.count <= 1);
        assert_true(merge_record_equal(&sides[i].record, &sides[0].record, true));
        assert_true(sum_of(&sides[i].record) == sum_of(&sides[0].plain));
    }
}

static void folding_changes_nothing(void **state)
{
    uint32_t folds = 0;
    (void)state;

    for (uint32_t round = 0; round < 6000; round++) {
        struct side sides[SIDES] = { 0 };
        uint64_t ops = 0;

        random_state = round;
        hlc_last = era_over = 0;
        for (uint32_t i = 0; i < SIDES; i++)
            sides[i].actor = merge_actor_make(1, i);
        for (uint32_t i = 0; i < 100; i++)
            step(sides, &ops, &folds);
        end(sides);
        for (uint32_t i = 0; i < SIDES; i++) {
            merge_record_deinit(&sides[i].record);
            merge_record_deinit(&sides[i].plain);
        }
    }
    assert_true(folds > 1000);
}

/* ---- single cases ---- */

/* Every side has what the others have. */
static void meet(struct side *sides)
{
    for (uint32_t i = 0; i < 2 * SIDES; i++)
        for (uint32_t j = 0; j < SIDES; j++) {
            (void)merge_record_join(&sides[i % SIDES].record, &sides[j].record);
            (void)merge_record_join(&sides[i % SIDES].plain, &sides[j].plain);
        }
}

static void count(struct side *side, int64_t delta, uint64_t op)
{
    write_both(side, &(struct merge_edit){ .path = NAME, .delta = delta }, false, op);
}

static void release(struct side *side)
{
    merge_record_deinit(&side->record);
    merge_record_deinit(&side->plain);
}

static void a_reset_leaves_what_it_did_not_see(void **state)
{
    struct side a = { .actor = 1 }, b = { .actor = 2 };
    (void)state;

    count(&a, 5, 0);
    (void)merge_record_join(&b.record, &a.record);
    count(&a, 7, 0); /* Meanwhile, under the same actor. */
    write_both(&b, NULL, true, 0);
    (void)merge_record_join(&a.record, &b.record);
    (void)merge_record_join(&b.record, &a.record);
    assert_int_equal(sum_of(&a.record), 7);
    assert_int_equal(sum_of(&b.record), 7);
    release(&a);
    release(&b);
}

static void a_retry_elsewhere_counts_once_before_and_after_a_reset(void **state)
{
    struct side a = { .actor = 1 }, b = { .actor = 2 }, c = { .actor = 3 };
    (void)state;

    count(&a, 5, 77);
    count(&b, 5, 77);
    (void)merge_record_join(&c.record, &a.record);
    write_both(&c, NULL, true, 0); /* It saw one attempt. */
    (void)merge_record_join(&a.record, &b.record);
    assert_int_equal(sum_of(&a.record), 5);
    (void)merge_record_join(&a.record, &c.record);
    assert_int_equal(sum_of(&a.record), 0);
    count(&c, 5, 77); /* Later than the reset. */
    assert_int_equal(sum_of(&c.record), 0);
    release(&a);
    release(&b);
    release(&c);
}

static void an_operation_is_folded_with_all_its_attempts_or_not(void **state)
{
    struct side sides[SIDES] = { { .actor = 1 }, { .actor = 2 }, { .actor = 3 } };
    struct merge_folding folding = { .everywhere = is_everywhere, .user = sides };
    (void)state;

    hlc_last = 0;
    count(&sides[0], 5, 77);
    hlc_last = 100;
    count(&sides[1], 5, 77);
    for (uint32_t i = 0; i < SIDES; i++)
        for (uint32_t j = 0; j < 2; j++)
            (void)merge_record_join(&sides[i].record, &sides[j].record);
    folding.retried_ms = 50; /* The first is old enough. */
    assert_false(merge_counter_fold(&sides[2].record, &folding));
    folding.retried_ms = 200;
    assert_true(merge_counter_fold(&sides[2].record, &folding));
    assert_int_equal(sum_of(&sides[2].record), 5);
    (void)merge_record_join(&sides[0].record, &sides[2].record);
    assert_int_equal(sum_of(&sides[0].record), 5);
    for (uint32_t i = 0; i < SIDES; i++)
        release(&sides[i]);
}

/* Seed 42279 of holdfast-merge-sim: one side folded all that an ended actor wrote, another one the
 * era before it and just the beginning of that. Neither fold has the other, so a merge of the two
 * lost what was in one of them alone. */
static void folds_over_eras_have_an_actor_wholly_or_not_at_all(void **state)
{
    struct side sides[SIDES] = { { .actor = merge_actor_make(0, 1) },
                                 { .actor = merge_actor_make(1, 2) },
                                 { .actor = merge_actor_make(2, 3) } };
    struct merge_folding early = { .era = 1, .everywhere = is_everywhere, .user = sides };
    struct merge_folding late = early;
    (void)state;

    hlc_last = 0;
    count(&sides[0], 20, 0);
    count(&sides[1], -28, 0);
    count(&sides[1], 33, 77);
    meet(sides);
    /* Its clock says that no retry comes, and it has not heard that the next era is over, too. */
    early.retried_ms = 100;
    assert_true(merge_counter_fold(&sides[0].record, &early));
    /* This one has heard that, and has a peer that told its time long ago. */
    late.era = 2;
    (void)merge_counter_fold(&sides[1].record, &late);
    meet(sides);
    for (uint32_t i = 0; i < SIDES; i++)
        assert_int_equal(sum_of(&sides[i].record), 25);
    late.retried_ms = 100;
    for (uint32_t i = 0; i < SIDES; i++) {
        (void)merge_counter_fold(&sides[i].record, &late);
        assert_int_equal(sides[i].record.count, 1);
        assert_int_equal(sum_of(&sides[i].record), 25);
    }
    for (uint32_t i = 0; i < SIDES; i++)
        release(&sides[i]);
}

static void values_that_are_none_are_refused(void **state)
{
    static const uint8_t zeros[40];
    struct merge_tally tally = { 0 };
    struct buf bytes = { 0 };
    (void)state;

    assert_int_equal(merge_tally_decode((struct slice){ zeros, 7 }, &tally), ERR_CORRUPT);
    assert_int_equal(merge_tally_decode((struct slice){ zeros, 8 }, &tally), ERR_OK);
    assert_int_equal(merge_tally_decode((struct slice){ zeros, 9 }, &tally), ERR_CORRUPT);
    assert_int_equal(merge_tally_decode((struct slice){ zeros, 17 }, &tally), ERR_CORRUPT);
    tally = (struct merge_tally){ .delta = -3, .rank = 2 };
    merge_tally_encode(&tally, &bytes);
    assert_int_equal(bytes.size, 9);
    assert_int_equal(merge_tally_decode(buf_slice(&bytes), &tally), ERR_OK);
    assert_true(tally.delta == -3 && tally.rank == 2 && tally.spent.size == 0);
    bytes.data[8] = 3;
    assert_int_equal(merge_tally_decode(buf_slice(&bytes), &tally), ERR_CORRUPT);
    bytes.data[8] = 2;
    buf_put_u64(&bytes, 1); /* What is folded remembers no operation. */
    assert_int_equal(merge_tally_decode(buf_slice(&bytes), &tally), ERR_CORRUPT);
    buf_deinit(&bytes);
}

static void an_increment_has_bounds(void **state)
{
    struct merge_edit edit = { .path = NAME, .delta = MERGE_DELTA_MAX };
    struct merge_edits edits = { .count = 1, .list = &edit, .dot = { 1, 1 } };
    struct merge_refusal refusal;
    (void)state;

    assert_int_equal(merge_edits_check(MERGE_POLICY_COUNTER, &edits, &refusal), ERR_OK);
    edit.delta = -MERGE_DELTA_MAX - 1;
    assert_int_equal(merge_edits_check(MERGE_POLICY_COUNTER, &edits, &refusal), ERR_TOO_LARGE);
    assert_string_equal(refusal.field, "delta");
    edit.delta = 1;
    edits.whole = true; /* A reset and a count are two writes: a retry of both would count again. */
    assert_int_equal(merge_edits_check(MERGE_POLICY_COUNTER, &edits, &refusal), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folding_changes_nothing),
        cmocka_unit_test(a_reset_leaves_what_it_did_not_see),
        cmocka_unit_test(a_retry_elsewhere_counts_once_before_and_after_a_reset),
        cmocka_unit_test(an_operation_is_folded_with_all_its_attempts_or_not),
        cmocka_unit_test(folds_over_eras_have_an_actor_wholly_or_not_at_all),
        cmocka_unit_test(values_that_are_none_are_refused),
        cmocka_unit_test(an_increment_has_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
