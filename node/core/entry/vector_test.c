#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/entry/vector.h"

static struct vector vector_of(const uint64_t (*items)[2], uint32_t count)
{
    struct vector v = { 0 };

    for (uint32_t i = 0; i < count; i++)
        for (uint64_t n = 0; n < items[i][1]; n++)
            vector_append(&v, items[i][0], items[i][0] % 3 + 1);
    return v;
}

#define VECTOR(...)                                                                                \
    vector_of((const uint64_t[][2]){ __VA_ARGS__ },                                                \
              sizeof((const uint64_t[][2]){ __VA_ARGS__ }) / 16)

static void index_is_the_sum_of_the_counters(void **state)
{
    struct vector empty = { 0 };
    struct vector v = VECTOR({ 1, 4 }, { 3, 2 });
    (void)state;

    assert_true(vector_index(&empty) == 0);
    assert_true(vector_index(&v) == 6);
}

static void prefixes_are_before_and_forks_are_incomparable(void **state)
{
    struct vector empty = { 0 };
    struct vector a = VECTOR({ 1, 4 }, { 3, 2 });
    struct vector prefix = VECTOR({ 1, 4 }, { 3, 1 });
    struct vector fork = VECTOR({ 1, 4 }, { 2, 7 });
    struct vector longer_tail = VECTOR({ 1, 9 });
    (void)state;

    assert_int_equal(vector_compare(&a, &a), VECTOR_EQUAL);
    assert_int_equal(vector_compare(&empty, &a), VECTOR_BEFORE);
    assert_int_equal(vector_compare(&prefix, &a), VECTOR_BEFORE);
    assert_int_equal(vector_compare(&a, &prefix), VECTOR_AFTER);
    assert_int_equal(vector_compare(&a, &fork), VECTOR_FORK);
    assert_int_equal(vector_compare(&a, &longer_tail), VECTOR_FORK);
}

static void logs_share_up_to_the_greatest_epoch_in_both(void **state)
{
    struct vector a = VECTOR({ 1, 4 }, { 3, 2 }, { 5, 8 });
    struct vector b = VECTOR({ 1, 4 }, { 3, 7 }, { 4, 1 });
    struct vector c = VECTOR({ 2, 4 });
    (void)state;

    assert_true(vector_common_index(&a, &b) == 6);
    assert_true(vector_common_index(&b, &a) == 6);
    assert_true(vector_common_index(&a, &c) == 0);
}

static void truncation_forgets_what_lies_above(void **state)
{
    struct vector v = VECTOR({ 1, 4 }, { 3, 2 }, { 5, 8 });
    struct vector want = VECTOR({ 1, 4 }, { 3, 1 });
    (void)state;

    vector_truncate(&v, 5);
    assert_int_equal(v.count, 2);
    assert_int_equal(vector_compare(&v, &want), VECTOR_EQUAL);
    vector_truncate(&v, 4);
    assert_int_equal(v.count, 1);
    vector_truncate(&v, 0);
    assert_int_equal(v.count, 0);
}

/* However many owners a shard has had, the vector stays small and still tells where logs part. */
static void old_epochs_are_folded(void **state)
{
    struct vector a = { 0 };
    struct vector b;
    struct vector old;
    (void)state;

    for (uint64_t epoch = 1; epoch <= 100; epoch++) {
        vector_append(&a, epoch, 1);
        vector_append(&a, epoch, 1);
        if (epoch == 10)
            old = a;
        if (epoch == 80)
            b = a;
    }
    assert_int_equal(a.count, VECTOR_EPOCHS_MAX);
    assert_true(vector_index(&a) == 200);
    assert_true(vector_common_index(&a, &b) == 160);
    vector_append(&b, 101, 2);
    assert_int_equal(vector_compare(&a, &b), VECTOR_FORK);
    /* What was folded cannot be told apart any more: the answer errs to the safe side. */
    assert_true(vector_common_index(&a, &old) == 0);
    vector_truncate(&a, a.folded_index);
    assert_int_equal(a.count, 0);
    assert_true(vector_common_index(&a, &b) == a.folded_index);
}

static void bytes_come_back_and_malformed_ones_are_refused(void **state)
{
    struct vector v = VECTOR({ 1, 4 }, { 3, 2 });
    struct vector back;
    struct buf buf = { 0 };
    (void)state;

    vector_encode(&v, &buf);
    struct reader reader = reader_from(buf_slice(&buf));
    assert_int_equal(vector_decode(&reader, &back), ERR_OK);
    assert_int_equal(reader_finish(&reader), ERR_OK);
    assert_int_equal(vector_compare(&v, &back), VECTOR_EQUAL);

    for (size_t size = 0; size < buf.size; size++) {
        reader = reader_from((struct slice){ buf.data, size });
        assert_int_equal(vector_decode(&reader, &back), ERR_CORRUPT);
    }
    store_u64(buf.data + 17 + 24, 1); /* The second epoch no longer rises. */
    reader = reader_from(buf_slice(&buf));
    assert_int_equal(vector_decode(&reader, &back), ERR_CORRUPT);
    buf_deinit(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(index_is_the_sum_of_the_counters),
        cmocka_unit_test(prefixes_are_before_and_forks_are_incomparable),
        cmocka_unit_test(logs_share_up_to_the_greatest_epoch_in_both),
        cmocka_unit_test(truncation_forgets_what_lies_above),
        cmocka_unit_test(old_epochs_are_folded),
        cmocka_unit_test(bytes_come_back_and_malformed_ones_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
