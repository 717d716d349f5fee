/* The queue of virtual time: by time, then in the order added, however far off. */
#include "node/core/replication/sim/sim_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "runtime/base/check.h"

static void push(struct sim_queue *queue, uint64_t at_ms, uint64_t number)
{
    sim_queue_push(queue, &(struct sim_event){ .at_ms = at_ms, .number = number });
}

static uint64_t pop(struct sim_queue *queue, uint64_t until_ms)
{
    struct sim_event event;

    return sim_queue_pop(queue, until_ms, &event) ? event.number : 0;
}

static void events_come_by_time_and_then_as_added(void **state)
{
    struct sim_queue queue = { 0 };
    (void)state;

    push(&queue, 1005, 3);
    push(&queue, 1000, 1);
    push(&queue, 1005, 4);
    push(&queue, 1001, 2);
    assert_int_equal(pop(&queue, 999), 0);
    assert_int_equal(pop(&queue, 1005), 1);
    push(&queue, 1005, 5);
    for (uint64_t number = 2; number <= 5; number++)
        assert_int_equal(pop(&queue, 1005), number);
    assert_int_equal(pop(&queue, UINT64_MAX), 0);
    sim_queue_deinit(&queue);
}

/* What was added first for a millisecond comes first, even if that was a long way off then. */
static void far_events_keep_their_place(void **state)
{
    struct sim_queue queue = { 0 };
    const uint64_t far_ms = 5 * SIM_QUEUE_MS + 17;
    (void)state;

    push(&queue, far_ms, 3);
    push(&queue, far_ms + SIM_QUEUE_MS, 6);
    push(&queue, far_ms, 4);
    push(&queue, far_ms - 5, 2);
    push(&queue, 9, 1);
    assert_int_equal(pop(&queue, UINT64_MAX), 1);
    assert_int_equal(pop(&queue, far_ms - 5), 2);
    push(&queue, far_ms, 5);
    for (uint64_t number = 3; number <= 6; number++)
        assert_int_equal(pop(&queue, UINT64_MAX), number);
    sim_queue_deinit(&queue);
}

/* Against the plainest queue there is. */
static void any_order_is_that_of_a_sorted_list(void **state)
{
    struct sim_random random = { .state = 11 };
    struct sim_queue queue = { 0 };
    uint64_t due_ms[400] = { 0 };
    uint64_t now_ms = 0;
    (void)state;

    for (uint32_t added = 0, popped = 0; popped < 400;) {
        if (added < 400 && (popped == added || sim_random_chance(&random, 600))) {
            uint64_t span = sim_random_chance(&random, 200) ? 4 * SIM_QUEUE_MS : 20;
            due_ms[added] = now_ms + sim_random_between(&random, 0, span);
            push(&queue, due_ms[added], added + 1);
            added++;
            continue;
        }
        uint32_t first = 0;
        while (due_ms[first] == UINT64_MAX)
            first++;
        for (uint32_t i = first; i < added; i++)
            first = due_ms[i] < due_ms[first] ? i : first;
        assert_int_equal(pop(&queue, UINT64_MAX), first + 1);
        now_ms = due_ms[first];
        due_ms[first] = UINT64_MAX;
        popped++;
    }
    sim_queue_deinit(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_by_time_and_then_as_added),
        cmocka_unit_test(far_events_keep_their_place),
        cmocka_unit_test(any_order_is_that_of_a_sorted_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
