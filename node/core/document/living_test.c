/* Which servers live: what was told, what is not told yet, and what is dead by its age. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "node/core/document/living.h"

static struct incarnation number(uint64_t revision)
{
    return (struct incarnation){ 2, revision };
}

static void assert_state(const struct living *living, uint64_t revision, uint64_t now_ms,
                         enum living_state expected)
{
    living_check(living);
    assert_int_equal(living_state_of(living, number(revision), now_ms), expected);
}

static void test_told(void **state)
{
    struct living living = { 0 };

    (void)state;
    assert_state(&living, 10, 1000000, LIVING_UNHEARD); /* Nothing is known yet. */
    living_hear(&living, 100, 1000);
    living_put(&living, number(10), false);
    living_put(&living, number(30), true);
    living_complete(&living);
    assert_state(&living, 10, 1000, LIVING_YES);
    assert_state(&living, 30, 1000, LIVING_DEAD);
    assert_int_equal(living_count(&living), 1);
    assert_int_equal(living.ended, 3); /* That one, all of before, and of earlier generations. */
    living_remove(&living, number(10));
    assert_state(&living, 10, 1000, LIVING_DEAD);
    assert_int_equal(living.ended, 4);
    living_remove(&living, number(30)); /* Was dead. */
    living_remove(&living, number(31)); /* Was never told. */
    assert_int_equal(living.ended, 4);
    living_put(&living, number(10), false); /* It came back before anyone decided. */
    assert_state(&living, 10, 1000, LIVING_YES);
    living_deinit(&living);
}

/* A cluster that was restored has no server yet, and what was restored names the old one's. */
static void test_an_earlier_generation(void **state)
{
    struct living living = { 0 };

    (void)state;
    living_hear(&living, 100, 1000);
    living_complete(&living);
    assert_state(&living, 500, 1000, LIVING_UNHEARD);
    uint64_t ended = living.ended;
    living_begin_generation(&living, number(500).generation);
    assert_state(&living, 500, 1000, LIVING_UNHEARD);
    living_begin_generation(&living, number(500).generation + 1);
    assert_true(living.ended > ended);
    assert_state(&living, 500, 1000, LIVING_DEAD);
    living_reset(&living);
    assert_state(&living, 500, 1000, LIVING_DEAD);
    living_deinit(&living);
}

static void test_not_told_yet(void **state)
{
    struct living living = { 0 };

    (void)state;
    living_hear(&living, 100, 1000);
    living_complete(&living);
    assert_state(&living, 90, 5999, LIVING_UNHEARD); /* Its registration may be on its way. */
    assert_state(&living, 90, 6000, LIVING_DEAD);
    assert_state(&living, 101, 1000000, LIVING_UNHEARD);
    living_hear(&living, 200, 3000); /* Writes without a pause hold nothing up. */
    assert_int_equal(living.ended, 1);
    living_hear(&living, 300, 6000);
    assert_int_equal(living.ended, 2); /* Once: what a sweep could not know when it began. */
    assert_state(&living, 90, 6001, LIVING_DEAD);
    assert_state(&living, 150, 6001, LIVING_UNHEARD);
    assert_state(&living, 300, 11000, LIVING_DEAD);
    living_hear(&living, 300, 600000);
    assert_int_equal(living.ended, 2);
    living_reset(&living);
    assert_state(&living, 90, 6001, LIVING_UNHEARD);
    living_hear(&living, 5, 20000);
    living_put(&living, (struct incarnation){ 3, 4 }, false);
    living_complete(&living); /* etcd was restored: older generations are gone, whatever number. */
    assert_state(&living, 90, 20000, LIVING_DEAD);
    living_deinit(&living);
}

static void test_limits(void **state)
{
    struct living living = { 0 };

    (void)state;
    living_hear(&living, 1000000, 0);
    living_complete(&living);
    for (uint64_t i = 1; i <= 3 * LIVING_DEAD_MAX; i++) {
        living_put(&living, number(2 * i), i % 2 == 0);
        if (i % 4 == 1)
            living_remove(&living, number(2 * i));
    }
    living_check(&living);
    assert_int_equal(living.dead, LIVING_DEAD_MAX);
    for (uint64_t i = 1; i <= 3 * LIVING_DEAD_MAX; i++)
        assert_int_equal(living_state_of(&living, number(2 * i), 5000),
                         i % 4 == 3 ? LIVING_YES : LIVING_DEAD);
    living_deinit(&living);
    living_hear(&living, 1000000, 0);
    living_complete(&living);
    for (uint64_t i = 1; i <= LIVING_SERVERS_MAX + 2; i++)
        living_put(&living, number(i), false);
    assert_int_equal(living_count(&living), LIVING_SERVERS_MAX);
    assert_state(&living, 2, 5000, LIVING_DEAD); /* The oldest are forgotten. */
    assert_state(&living, 3, 5000, LIVING_YES);
    living_deinit(&living);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_told),
        cmocka_unit_test(test_an_earlier_generation),
        cmocka_unit_test(test_not_told_yet),
        cmocka_unit_test(test_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
