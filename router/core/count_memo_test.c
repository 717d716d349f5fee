#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "router/core/count_memo.h"
#include "runtime/base/check.h"

static struct count_name name_of(const char *collection, const char *target)
{
    return (struct count_name){ slice_from_text(collection), slice_from_text(target), false };
}

static void put(struct count_memo *memo, const char *target, uint64_t count, uint64_t at_ms)
{
    const struct count_name name = name_of("likes", target);

    count_memo_put(
        memo, &name,
        &(struct count_known){ .count = count, .from_ms = 10, .to_ms = 20, .gathered_ms = at_ms });
    count_memo_check(memo);
}

/* The count; UINT64_MAX: it is not known so lately. */
static uint64_t find(struct count_memo *memo, const char *target, uint64_t since_ms)
{
    const struct count_name name = name_of("likes", target);
    struct count_known known;

    bool found = count_memo_find(memo, &name, since_ms, &known);
    count_memo_check(memo);
    return found ? known.count : UINT64_MAX;
}

static void what_is_too_old_is_a_miss_and_may_be_recalled(void **state)
{
    struct count_memo *memo = count_memo_new(1u << 16);
    const struct count_name name = name_of("likes", "g1");
    struct count_known known;
    (void)state;

    assert_int_equal(find(memo, "g1", 0), UINT64_MAX);
    put(memo, "g1", 7, 1000);
    assert_int_equal(find(memo, "g1", 1000), 7);
    assert_int_equal(find(memo, "g1", 1001), UINT64_MAX);
    assert_true(count_memo_recall(memo, &name, 900, &known));
    assert_int_equal(known.count, 7);
    assert_int_equal(known.from_ms, 10);
    assert_int_equal(known.to_ms, 20);
    assert_false(count_memo_recall(memo, &name, 1001, &known));
    assert_int_equal(count_memo_stats(memo).hits, 1);
    assert_int_equal(count_memo_stats(memo).misses, 2);
    count_memo_free(memo);
}

static void a_slow_gather_does_not_replace_a_later_one(void **state)
{
    struct count_memo *memo = count_memo_new(1u << 16);
    (void)state;

    put(memo, "g1", 7, 1000);
    put(memo, "g1", 6, 900);
    assert_int_equal(find(memo, "g1", 0), 7);
    put(memo, "g1", 8, 1100);
    assert_int_equal(find(memo, "g1", 1100), 8);
    assert_int_equal(count_memo_stats(memo).entries, 1);
    count_memo_free(memo);
}

static void collection_and_target_are_kept_apart(void **state)
{
    struct count_memo *memo = count_memo_new(1u << 16);
    const struct count_name names[] = { name_of("a", "bc"), name_of("ab", "c"),
                                        name_of("bc", "a") };
    struct count_known known;
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        count_memo_put(memo, &names[i], &(struct count_known){ .count = i, .gathered_ms = 1 });
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        assert_true(count_memo_find(memo, &names[i], 0, &known));
        assert_int_equal(known.count, i);
    }
    count_memo_free(memo);
}

/* Of 2000 with room for fewer, those that are asked for stay. */
static void what_was_asked_for_longest_ago_goes_first(void **state)
{
    const size_t bytes_max = 20000;
    struct count_memo *memo = count_memo_new(bytes_max);
    char target[16];
    (void)state;

    put(memo, "hot", 1, 5);
    for (unsigned i = 0; i < 2000; i++) {
        snprintf(target, sizeof target, "g%u", i);
        put(memo, target, i, 5);
        assert_int_equal(find(memo, "hot", 0), 1);
        assert_true(count_memo_stats(memo).bytes <= bytes_max);
    }
    struct count_memo_stats stats = count_memo_stats(memo);
    assert_true(stats.entries > 50);
    assert_int_equal(stats.entries + stats.evictions, 2001);
    assert_int_equal(find(memo, "g1999", 0), 1999);
    assert_int_equal(find(memo, "g0", 0), UINT64_MAX);
    count_memo_free(memo);
}

static void without_room_nothing_is_kept(void **state)
{
    struct count_memo *memo = count_memo_new(0);
    (void)state;

    put(memo, "g1", 7, 1000);
    assert_int_equal(find(memo, "g1", 0), UINT64_MAX);
    assert_int_equal(count_memo_stats(memo).entries, 0);
    count_memo_free(memo);
}

static void put_life(struct count_memo *memo, const char *target, uint64_t number, uint64_t at_ms)
{
    const struct count_name name = name_of("likes", target);

    count_memo_put(memo, &name,
                   &(struct count_known){
                       .count = number, .collection_number = number, .gathered_ms = at_ms });
    count_memo_check(memo);
}

static void a_former_life_is_not_known_any_more(void **state)
{
    struct count_memo *memo = count_memo_new(1u << 16);
    const struct count_name name = name_of("likes", "g1");
    struct count_known known;
    (void)state;

    put_life(memo, "g1", 9, 1000);
    put_life(memo, "g2", 9, 1000);
    assert_int_equal(find(memo, "g1", 0), 9);
    put_life(memo, "g2", 10, 1100);
    assert_int_equal(find(memo, "g1", 0), UINT64_MAX);
    assert_false(count_memo_recall(memo, &name, 0, &known));
    assert_int_equal(find(memo, "g2", 0), 10);
    count_memo_note_life(memo, &name, 9, 1050); /* An earlier word. */
    assert_int_equal(find(memo, "g2", 0), 10);
    count_memo_note_life(memo, &name, 11, 1200);
    assert_int_equal(find(memo, "g2", 0), UINT64_MAX);
    put_life(memo, "g1", 11, 1300);
    assert_int_equal(find(memo, "g1", 0), 11);
    count_memo_free(memo);
}

/* However many other collections are asked for, none leaves its number before its counts. */
static void a_life_is_kept_as_long_as_its_counts(void **state)
{
    struct count_memo *memo = count_memo_new(4000);
    const struct count_name name = name_of("likes", "g1");
    char text[16];
    (void)state;

    put_life(memo, "g1", 9, 1000);
    count_memo_note_life(memo, &name, 10, 1100);
    for (unsigned i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "c%u", i);
        const struct count_name other = name_of(text, "t");
        count_memo_put(memo, &other,
                       &(struct count_known){ .collection_number = i + 20, .gathered_ms = 1200 });
        assert_int_equal(find(memo, "g1", 0), UINT64_MAX);
    }
    count_memo_free(memo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_too_old_is_a_miss_and_may_be_recalled),
        cmocka_unit_test(a_slow_gather_does_not_replace_a_later_one),
        cmocka_unit_test(collection_and_target_are_kept_apart),
        cmocka_unit_test(what_was_asked_for_longest_ago_goes_first),
        cmocka_unit_test(without_room_nothing_is_kept),
        cmocka_unit_test(a_former_life_is_not_known_any_more),
        cmocka_unit_test(a_life_is_kept_as_long_as_its_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
