/* What causality costs a record on disk: all that is not path or value. Sizes are exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "node/core/mergeable/policy.h"

#define DAY_MS 86400000u

static uint64_t size_of(const struct merge_record *record)
{
    struct buf bytes = { 0 };

    merge_record_encode(record, &bytes);
    uint64_t size = bytes.size - merge_record_bytes(record);

    buf_deinit(&bytes);
    return size;
}

/* As it is stored once all members have it: the clock says the rest. */
static void write_one(struct merge_record *record, struct slice path, struct merge_dot dot,
                      uint64_t now_ms)
{
    struct merge_edit edit = { .path = path, .value = SLICE_LITERAL("value") };
    struct merge_edits edits = { .count = 1, .list = &edit, .dot = dot, .hlc = now_ms << 16 };

    merge_edits_apply(record, &edits);
    causal_deinit(&record->context);
    causal_deinit(&record->recent);
}

/* At most 48 bytes a record without conflicts. */
static void a_value_costs_at_most_48_bytes(void **state)
{
    struct merge_record record = { .policy = MERGE_POLICY_LWW };
    (void)state;

    write_one(&record, SLICE_LITERAL(""), (struct merge_dot){ UINT64_MAX, 100000000 },
              1750000000000);
    assert_in_range(size_of(&record), 1, 48);
    merge_record_deinit(&record);
}

/* At most 12 more for a leaf that was changed alone, 30 days later, after 2 million writes. */
static void a_leaf_costs_at_most_12_more(void **state)
{
    struct merge_record record = { .policy = MERGE_POLICY_MERGE };
    (void)state;

    write_one(&record, SLICE_LITERAL("a"), (struct merge_dot){ UINT64_MAX, 2000000 },
              1750000000000);
    uint64_t before = size_of(&record);

    write_one(&record, SLICE_LITERAL("b"), (struct merge_dot){ UINT64_MAX, 2000001 },
              1750000000000 + 30ull * DAY_MS);
    assert_in_range(size_of(&record) - before, 1, 12);
    /* The first leaf of another actor names it, too. */
    before = size_of(&record);
    write_one(&record, SLICE_LITERAL("c"), (struct merge_dot){ UINT64_MAX - 1, 5 },
              1750000000000 + 30ull * DAY_MS);
    assert_in_range(size_of(&record) - before, 1, 20);
    merge_record_deinit(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_costs_at_most_48_bytes),
        cmocka_unit_test(a_leaf_costs_at_most_12_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
