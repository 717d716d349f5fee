#include "tests/chaos/check/linear.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"

static struct timed_deed granted(int64_t from, int64_t to, int64_t gold)
{
    return (struct timed_deed){ .done = { DEED_GRANT, OUTCOME_OK, .gold = gold },
                                .called_at = from,
                                .answered_at = to };
}

static struct timed_deed spent(int64_t from, int64_t to, int64_t gold)
{
    return (struct timed_deed){ .done = { DEED_SPEND, OUTCOME_OK, .gold = gold },
                                .called_at = from,
                                .answered_at = to };
}

static struct timed_deed gold_read(int64_t from, int64_t to, int64_t gold)
{
    return (struct timed_deed){ .done = { DEED_READ, OUTCOME_OK, .has_gold_after = true,
                                          .gold_after = gold },
                                .called_at = from,
                                .answered_at = to };
}

static struct timed_deed open(struct timed_deed deed)
{
    deed.done.outcome = OUTCOME_OPEN;
    return deed;
}

static struct timed_deed saved(int64_t from, int64_t to, int64_t document, uint64_t fence)
{
    return (
        struct timed_deed){ .done = { DEED_SAVE, OUTCOME_OK, .document = document, .fence = fence },
                            .called_at = from,
                            .answered_at = to };
}

static struct timed_deed joined(int64_t from, int64_t to, uint64_t fence)
{
    return (struct timed_deed){ .done = { DEED_JOIN, OUTCOME_OK, .fence = fence },
                                .called_at = from,
                                .answered_at = to };
}

static enum verdict judge(const struct timed_deed *deeds, size_t count)
{
    struct linear_failure failure;

    return linear_check(deeds, count, &failure);
}

#define ASSERT_HOLDS(...)                                                                          \
    do {                                                                                           \
        const struct timed_deed deeds_[] = { __VA_ARGS__ };                                        \
        assert_int_equal(judge(deeds_, ARRAY_SIZE(deeds_)), VERDICT_HOLDS);                        \
    } while (0)
#define ASSERT_BROKEN(...)                                                                         \
    do {                                                                                           \
        const struct timed_deed deeds_[] = { __VA_ARGS__ };                                        \
        assert_int_equal(judge(deeds_, ARRAY_SIZE(deeds_)), VERDICT_BROKEN);                       \
    } while (0)

static void test_what_overlaps_may_have_any_order(void **state)
{
    (void)state;
    ASSERT_HOLDS(granted(1, 10, 5), gold_read(2, 9, 0), gold_read(3, 8, 5));
    ASSERT_HOLDS(granted(1, 10, 5), spent(2, 3, 5), gold_read(11, 12, 0));
    ASSERT_HOLDS(granted(1, 2, 5), granted(3, 4, 5), gold_read(5, 6, 10));
}

static void test_an_acknowledged_write_that_is_not_read_is_found(void **state)
{
    (void)state;
    ASSERT_BROKEN(granted(1, 2, 5), gold_read(3, 4, 0));
    ASSERT_BROKEN(granted(1, 2, 5), granted(3, 4, 5), gold_read(5, 6, 5));
}

static void test_a_stale_read_is_found(void **state)
{
    (void)state;
    ASSERT_BROKEN(granted(1, 10, 5), gold_read(2, 3, 5), gold_read(4, 5, 0));
}

static void test_a_write_that_took_place_twice_is_found(void **state)
{
    (void)state;
    ASSERT_BROKEN(granted(1, 2, 5), gold_read(3, 4, 10));
}

static void test_what_was_not_answered_may_have_taken_place_at_any_time_later(void **state)
{
    (void)state;
    ASSERT_HOLDS(open(granted(1, 0, 5)), gold_read(2, 3, 0));
    ASSERT_HOLDS(open(granted(1, 0, 5)), gold_read(2, 3, 5));
    ASSERT_HOLDS(open(granted(1, 0, 5)), gold_read(2, 3, 0), gold_read(4, 5, 5));
    ASSERT_BROKEN(open(granted(1, 0, 5)), gold_read(2, 3, 5), gold_read(4, 5, 0));
    ASSERT_BROKEN(gold_read(1, 2, 5), open(granted(3, 0, 5)));
}

static void test_a_refusal_for_funds_says_how_little_there_was(void **state)
{
    struct timed_deed poor = spent(3, 4, 6);

    (void)state;
    poor.done.outcome = OUTCOME_REFUSED;
    poor.done.reason = REFUSED_FUNDS;
    ASSERT_HOLDS(granted(1, 2, 5), poor);
    ASSERT_BROKEN(granted(1, 2, 6), poor);
}

static void test_gold_of_a_refused_send_may_be_away_until_the_answer(void **state)
{
    struct timed_deed refused = { .done = { DEED_SEND, OUTCOME_REFUSED, .gold = 5 },
                                  .called_at = 3,
                                  .answered_at = 10 };

    (void)state;
    ASSERT_HOLDS(granted(1, 2, 8), refused, gold_read(4, 5, 8), gold_read(11, 12, 8));
    ASSERT_HOLDS(granted(1, 2, 8), refused, gold_read(4, 5, 3), gold_read(11, 12, 8));
    ASSERT_HOLDS(granted(1, 2, 8), refused, gold_read(4, 5, 8), gold_read(6, 7, 3),
                 gold_read(8, 9, 8));
    ASSERT_BROKEN(granted(1, 2, 8), refused, gold_read(4, 5, 3), gold_read(6, 7, 8),
                  gold_read(8, 9, 3));
    ASSERT_BROKEN(granted(1, 2, 8), refused, gold_read(11, 12, 3));
    ASSERT_BROKEN(granted(1, 2, 4), refused, gold_read(4, 5, -1));
    ASSERT_HOLDS(granted(1, 2, 8), open(refused), gold_read(4, 5, 3), gold_read(11, 12, 8));
    ASSERT_BROKEN(granted(1, 2, 8), open(refused), gold_read(4, 5, 3), gold_read(6, 7, 8),
                  gold_read(11, 12, 3));
}

static void test_a_holder_that_was_replaced_cannot_write(void **state)
{
    (void)state;
    ASSERT_HOLDS(joined(1, 2, 1), saved(3, 4, 7, 1), joined(5, 6, 2), saved(7, 8, 8, 2));
    ASSERT_BROKEN(joined(1, 2, 1), joined(3, 4, 2), saved(5, 6, 7, 1));
    ASSERT_BROKEN(joined(1, 2, 2), joined(3, 4, 2));
    /* The fence that this one was given is unknown, only that it was higher. */
    ASSERT_HOLDS(joined(1, 2, 1), open(joined(3, 0, 0)), joined(5, 6, 3));
    ASSERT_HOLDS(joined(1, 2, 1), open(joined(3, 0, 0)), saved(5, 6, 7, 1));
}

static void test_who_left_cannot_write(void **state)
{
    struct timed_deed left = { .done = { DEED_LEAVE, OUTCOME_OK, .fence = 1 },
                               .called_at = 3,
                               .answered_at = 4 };

    (void)state;
    ASSERT_BROKEN(joined(1, 2, 1), left, saved(5, 6, 7, 1));
}

static void test_a_failure_tells_how_far_an_order_goes(void **state)
{
    const struct timed_deed deeds[] = { granted(1, 2, 5), granted(3, 4, 5), gold_read(5, 6, 5) };
    struct linear_failure failure;

    (void)state;
    assert_int_equal(linear_check(deeds, 3, &failure), VERDICT_BROKEN);
    assert_int_equal(failure.placed, 2);
    assert_int_equal(failure.last, 1);
    assert_int_equal(failure.stuck, 2);
    assert_int_equal(failure.state.gold, 10);
}

/* An order of 2,000 with four open; then one answer is made wrong. */
static void test_a_long_history_is_judged(void **state)
{
    enum { COUNT = 2000 };
    struct timed_deed *deeds = calloc(COUNT, sizeof *deeds);
    struct linear_failure failure;
    int64_t gold = 0;

    (void)state;
    assert_non_null(deeds);
    for (int i = 0; i < COUNT; i++) {
        int64_t from = i * 10, to = i * 10 + 35; /* Four at a time. */
        gold += 3;
        deeds[i] = granted(from, to, 3);
        if (i % 500 == 0)
            deeds[i] = open(deeds[i]);
        else if (i % 7 == 0) {
            deeds[i].done.has_gold_after = true;
            deeds[i].done.gold_after = gold;
        }
    }
    assert_int_equal(linear_check(deeds, COUNT, &failure), VERDICT_HOLDS);
    deeds[1750].done.outcome = OUTCOME_OK;
    deeds[1757].done.gold_after += 600;
    assert_int_equal(linear_check(deeds, COUNT, &failure), VERDICT_BROKEN);
    free(deeds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_overlaps_may_have_any_order),
        cmocka_unit_test(test_an_acknowledged_write_that_is_not_read_is_found),
        cmocka_unit_test(test_a_stale_read_is_found),
        cmocka_unit_test(test_a_write_that_took_place_twice_is_found),
        cmocka_unit_test(test_what_was_not_answered_may_have_taken_place_at_any_time_later),
        cmocka_unit_test(test_a_refusal_for_funds_says_how_little_there_was),
        cmocka_unit_test(test_gold_of_a_refused_send_may_be_away_until_the_answer),
        cmocka_unit_test(test_a_holder_that_was_replaced_cannot_write),
        cmocka_unit_test(test_who_left_cannot_write),
        cmocka_unit_test(test_a_failure_tells_how_far_an_order_goes),
        cmocka_unit_test(test_a_long_history_is_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
