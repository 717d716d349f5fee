/* Hours: what is counted in which, what seven days leave of it, and bytes that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/favorite/hours.h"

#define START 500000u /* In 2027. */

static void add(struct hours *hours, uint32_t hour, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++)
        hours_add(hours, hour);
}

static uint64_t in(const struct hours *hours, uint32_t hour)
{
    return hours_sum(hours, hour, 1) - hours_sum(hours, hour + 1, 1);
}

static void assert_same(const struct hours *a, const struct hours *b)
{
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->list, b->list, a->count * sizeof *a->list);
}

static void a_sum_is_of_the_hours_of_its_window(void **state)
{
    struct hours hours = { 0 };

    (void)state;
    add(&hours, START + 1, 2);
    add(&hours, START + 24, 5);
    add(&hours, START, 3); /* In any order. */
    assert_int_equal(hours.count, 3);
    assert_int_equal(hours.list[0].hour, START);
    assert_int_equal(hours_sum(&hours, START + 24, HOURS_DAY), 7);
    assert_int_equal(hours_sum(&hours, START + 24, HOURS_MAX), 10);
    assert_int_equal(hours_sum(&hours, START + 25, HOURS_DAY), 5);
    assert_int_equal(hours_sum(&hours, START + 23, HOURS_DAY), 10); /* And what is later. */
    assert_int_equal(hours_sum(&hours, START + 24 + HOURS_MAX, HOURS_MAX), 0);
    assert_int_equal(hours_sum(&hours, 0, HOURS_DAY), 10);
    assert_int_equal(hours_sum(&(struct hours){ 0 }, START, HOURS_MAX), 0);
}

static void what_is_older_than_seven_days_is_forgotten(void **state)
{
    struct hours hours = { 0 };

    (void)state;
    add(&hours, START, 2);
    add(&hours, START + HOURS_MAX - 1, 1);
    assert_int_equal(in(&hours, START), 2);
    add(&hours, START + HOURS_MAX, 1);
    assert_int_equal(in(&hours, START), 0);
    add(&hours, START, 1); /* Too old when it comes. */
    assert_int_equal(in(&hours, START), 0);
    add(&hours, START + 1, 4);
    assert_int_equal(in(&hours, START + 1), 4);
    hours_prune(&hours, START + HOURS_MAX);
    assert_int_equal(in(&hours, START + 1), 4);
    hours_prune(&hours, START + HOURS_MAX + 1);
    assert_int_equal(in(&hours, START + 1), 0);
    assert_int_equal(hours.count, 2);
    hours_prune(&hours, 5); /* Before there are seven days. */
    assert_int_equal(hours.count, 2);
    hours_prune(&hours, UINT32_MAX);
    assert_int_equal(hours.count, 0);
}

static void an_hour_never_falls_below_zero(void **state)
{
    struct hours hours = { 0 };

    (void)state;
    add(&hours, START, 2);
    hours_remove(&hours, START + 1);
    hours_remove(&hours, START);
    assert_int_equal(in(&hours, START), 1);
    hours_remove(&hours, START);
    hours_remove(&hours, START);
    assert_int_equal(hours.count, 0);
}

static void every_hour_of_seven_days_has_room(void **state)
{
    struct hours hours = { 0 };

    (void)state;
    for (uint32_t i = 0; i < 2 * HOURS_MAX; i++)
        add(&hours, START + i, 1);
    assert_int_equal(hours.count, HOURS_MAX);
    assert_int_equal(hours.list[0].hour, START + HOURS_MAX);
    assert_int_equal(hours_sum(&hours, START + 2 * HOURS_MAX - 1, HOURS_MAX), HOURS_MAX);
    hours.list[3].count = HOURS_COUNT_MAX;
    hours_add(&hours, (uint32_t)hours.list[3].hour);
    assert_int_equal(hours.list[3].count, HOURS_COUNT_MAX); /* It stops there. */
}

static void more_than_one_is_added_at_once(void **state)
{
    struct hours hours = { 0 };

    (void)state;
    hours_add_many(&hours, START, 7000000000u);
    hours_add_many(&hours, START + 1, 1);
    hours_add_many(&hours, START, 2);
    hours_add_many(&hours, START + 2, 0);
    assert_int_equal(hours.count, 2);
    assert_int_equal(in(&hours, START), 7000000002u);
    assert_int_equal(hours_sum(&hours, START + 1, HOURS_DAY), 7000000003u);
    hours_add_many(&hours, START + 1, UINT64_MAX);
    assert_int_equal(hours.list[1].count, HOURS_COUNT_MAX);
}

static void a_part_is_replaced_by_what_it_has_become(void **state)
{
    struct hours sum = { 0 }, before = { 0 }, after = { 0 };

    (void)state;
    add(&sum, START, 5);
    add(&sum, START + 3, 1);
    add(&before, START, 3);
    add(&after, START, 1);
    add(&after, START + 2, 4);
    hours_replace(&sum, &before, &after);
    assert_int_equal(in(&sum, START), 3);
    assert_int_equal(in(&sum, START + 2), 4);
    assert_int_equal(in(&sum, START + 3), 1);
    hours_replace(&sum, &after, &(struct hours){ 0 });
    assert_int_equal(in(&sum, START), 2);
    assert_int_equal(in(&sum, START + 2), 0);
    hours_replace(&sum, &before, &(struct hours){ 0 }); /* More than there is. */
    assert_int_equal(in(&sum, START), 0);
    after = (struct hours){ 0 };
    add(&after, START + 3 + HOURS_MAX, 1);
    hours_replace(&sum, &(struct hours){ 0 }, &after);
    assert_same(&sum, &after); /* The rest is older than seven days. */
}

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

/* Against an array with a place for each hour. */
static void any_changes_come_to_what_they_say(void **state)
{
    enum { SPAN = 600 };
    static uint32_t plain[SPAN];
    struct hours hours = { 0 };
    uint32_t seed = 7, newest;

    (void)state;
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t hour = (next(&seed) % 200 + i / 50) % SPAN;
        newest = hours.count > 0 ? (uint32_t)hours.list[hours.count - 1].hour - START : 0;
        if (next(&seed) % 5 < 2) {
            hours_remove(&hours, START + hour);
            plain[hour] -= plain[hour] > 0;
        } else if (hour + HOURS_MAX > newest) {
            hours_add(&hours, START + hour);
            plain[hour]++;
            for (uint32_t j = 0; j + HOURS_MAX <= hour; j++)
                plain[j] = 0;
        }
        uint32_t at = next(&seed) % SPAN;
        assert_int_equal(in(&hours, START + at), plain[at]);
    }
}

/* ---- bytes ---- */
static bool reads(const struct buf *bytes, struct hours *ret_hours)
{
    struct reader reader = reader_from(buf_slice(bytes));

    hours_read(&reader, ret_hours);
    return reader_finish(&reader) == ERR_OK;
}

static void hours_are_read_as_they_were_written(void **state)
{
    struct hours hours = { 0 }, read;
    struct buf bytes = { 0 };

    (void)state;
    for (uint32_t i = 0; i <= HOURS_MAX; i++) {
        buf_clear(&bytes);
        hours_encode(&hours, &bytes);
        assert_true(reads(&bytes, &read));
        assert_same(&read, &hours);
        add(&hours, START + i, i * 37 % 300 + 1);
        hours_add_many(&hours, START + i, (uint64_t)i << 40);
    }
    for (; bytes.size > 0; bytes.size--) {
        struct buf cut = { .data = bytes.data, .size = bytes.size - 1 };
        assert_false(reads(&cut, &read));
    }
    buf_deinit(&bytes);
}

/* Pairs of a step and a count, behind their number. */
static bool reads_pairs(uint8_t number, const uint64_t (*pairs)[2], size_t count)
{
    struct buf bytes = { 0 };
    struct hours read;

    buf_put_u8(&bytes, number);
    for (size_t i = 0; i < count; i++) {
        buf_put_compact(&bytes, pairs[i][0]);
        buf_put_compact(&bytes, pairs[i][1]);
    }
    bool sound = reads(&bytes, &read);
    assert_true(sound || read.count == 0);
    buf_deinit(&bytes);
    return sound;
}

static void bytes_that_are_no_hours_are_refused(void **state)
{
    (void)state;
    assert_true(reads_pairs(2, (const uint64_t[][2]){ { 10, 1 }, { HOURS_MAX - 1, 1 } }, 2));
    assert_false(reads_pairs(2, (const uint64_t[][2]){ { 10, 1 }, { HOURS_MAX, 1 } }, 2));
    assert_false(reads_pairs(2, (const uint64_t[][2]){ { 10, 1 }, { 0, 1 } }, 2));
    assert_false(reads_pairs(1, (const uint64_t[][2]){ { 0, 1 } }, 1));
    assert_false(reads_pairs(1, (const uint64_t[][2]){ { 10, 0 } }, 1));
    assert_false(reads_pairs(1, (const uint64_t[][2]){ { 10, HOURS_COUNT_MAX + 1 } }, 1));
    assert_true(reads_pairs(1, (const uint64_t[][2]){ { UINT32_MAX, HOURS_COUNT_MAX } }, 1));
    assert_false(reads_pairs(2, (const uint64_t[][2]){ { 10, HOURS_COUNT_MAX }, { 1, 1 } }, 2));
    assert_false(reads_pairs(1, (const uint64_t[][2]){ { UINT32_MAX + 1ull, 1 } }, 1));
    assert_false(reads_pairs(2, (const uint64_t[][2]){ { UINT32_MAX, 1 }, { 1, 1 } }, 2));
    assert_false(reads_pairs(1, (const uint64_t[][2]){ { UINT64_MAX, 1 } }, 1));
    assert_false(reads_pairs(HOURS_MAX + 1, NULL, 0));
    assert_false(reads_pairs(2, (const uint64_t[][2]){ { 10, 1 } }, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sum_is_of_the_hours_of_its_window),
        cmocka_unit_test(what_is_older_than_seven_days_is_forgotten),
        cmocka_unit_test(an_hour_never_falls_below_zero),
        cmocka_unit_test(every_hour_of_seven_days_has_room),
        cmocka_unit_test(more_than_one_is_added_at_once),
        cmocka_unit_test(a_part_is_replaced_by_what_it_has_become),
        cmocka_unit_test(any_changes_come_to_what_they_say),
        cmocka_unit_test(hours_are_read_as_they_were_written),
        cmocka_unit_test(bytes_that_are_no_hours_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
