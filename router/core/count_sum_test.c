#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "router/core/count_sum.h"

static struct arena arena;
static struct count_sum sum;

static int tear_down(void **state)
{
    (void)state;
    arena_deinit(&arena);
    arena = (struct arena){ 0 };
    return 0;
}

static err add(uint32_t shard, uint64_t number, int64_t at_ms, uint64_t count)
{
    const uint64_t counts[] = { count, 1 };

    return count_sum_add(&sum, &(struct count_part){ shard, number, at_ms, 2, counts });
}

static void every_shard_adds_its_part_once(void **state)
{
    (void)state;

    count_sum_init(&sum, 3, 2, &arena);
    assert_int_equal(add(2, 9, 500, 10), ERR_OK);
    assert_int_equal(add(0, 9, 300, 20), ERR_OK);
    assert_false(count_sum_is_whole(&sum));
    assert_int_equal(add(2, 9, 500, 10), ERR_CORRUPT);
    assert_int_equal(add(1, 9, 400, 0), ERR_OK);
    assert_true(count_sum_is_whole(&sum));
    assert_int_equal(sum.counts[0], 30);
    assert_int_equal(sum.counts[1], 3);
    assert_int_equal(sum.from_ms, 300);
    assert_int_equal(sum.to_ms, 500);
}

static void parts_of_two_lives_of_a_name_have_no_sum(void **state)
{
    (void)state;

    count_sum_init(&sum, 2, 2, &arena);
    assert_int_equal(add(0, 9, 500, 10), ERR_OK);
    assert_int_equal(add(1, 10, 500, 10), ERR_CONFLICT);
}

static void what_makes_no_sense_is_no_part(void **state)
{
    const uint64_t counts[] = { 1, 2, 3 };
    (void)state;

    count_sum_init(&sum, 2, 2, &arena);
    assert_int_equal(add(2, 9, 500, 1), ERR_CORRUPT);
    assert_int_equal(add(0, 0, 500, 1), ERR_CORRUPT);
    assert_int_equal(count_sum_add(&sum, &(struct count_part){ 0, 9, 5, 3, counts }), ERR_CORRUPT);
    assert_int_equal(count_sum_add(&sum, &(struct count_part){ 0, 9, 5, 1, counts }), ERR_CORRUPT);
    assert_int_equal(add(0, 9, 500, INT64_MAX), ERR_OK);
    assert_int_equal(add(1, 9, 500, 1), ERR_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_shard_adds_its_part_once, tear_down),
        cmocka_unit_test_teardown(parts_of_two_lives_of_a_name_have_no_sum, tear_down),
        cmocka_unit_test_teardown(what_makes_no_sense_is_no_part, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
