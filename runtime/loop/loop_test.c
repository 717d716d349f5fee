#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/loop/loop.h"

/* A bound only. */
#define LIMIT_MS 60000u

struct trail {
    struct loop *loop;
    struct loop_timer timers[8];
    struct loop_hook hooks[2];
    int seen[64];
    int count;
    int until;
    int signum;
};

struct mark {
    struct trail *trail;
    int number;
};

static void note(struct trail *trail, int number)
{
    CHECK(trail->count < 64);
    trail->seen[trail->count++] = number;
}

static void timer_fired(void *user)
{
    struct mark *mark = user;
    note(mark->trail, mark->number);
}

static bool enough(void *user)
{
    struct trail *trail = user;
    return trail->count >= trail->until;
}

static void timers_fire_in_due_order_and_ties_in_start_order(void **state)
{
    (void)state;
    struct trail t = { .until = 5 };
    struct mark marks[5];
    static const uint64_t delays[5] = { 9, 3, 6, 3, 0 };
    assert_int_equal(loop_new(&t.loop), ERR_OK);
    for (int i = 0; i < 5; i++) {
        marks[i] = (struct mark){ &t, i };
        loop_timer_init(&t.timers[i], t.loop, timer_fired, &marks[i]);
        loop_timer_start(&t.timers[i], delays[i]);
    }
    assert_true(loop_run_until(t.loop, enough, &t, LIMIT_MS));
    static const int expected[5] = { 4, 1, 3, 2, 0 };
    assert_memory_equal(t.seen, expected, sizeof expected);
    loop_free(t.loop);
}

static void stopped_timer_never_fires_and_its_memory_may_go(void **state)
{
    (void)state;
    struct trail t = { .until = 1 };
    struct mark late = { &t, 7 };
    struct loop_timer *doomed[50];
    assert_int_equal(loop_new(&t.loop), ERR_OK);
    for (int i = 0; i < 50; i++) {
        doomed[i] = malloc(sizeof *doomed[i]);
        assert_non_null(doomed[i]);
        loop_timer_init(doomed[i], t.loop, timer_fired, &late);
        loop_timer_start(doomed[i], (uint64_t)(i * 7 % 13) / 4);
    }
    loop_timer_init(&t.timers[0], t.loop, timer_fired, &late);
    loop_timer_start(&t.timers[0], 20);
    for (int i = 0; i < 50; i++) {
        loop_timer_stop(doomed[i]);
        assert_false(loop_timer_is_running(doomed[i]));
        free(doomed[i]);
    }
    assert_true(loop_run_until(t.loop, enough, &t, LIMIT_MS));
    assert_int_equal(t.count, 1);
    loop_free(t.loop);
}

static void repeat_fired(void *user)
{
    struct trail *t = user;
    note(t, 1);
    if (t->count == 3)
        loop_timer_stop(&t->timers[0]);
}

static bool three_and_timer_off(void *user)
{
    struct trail *t = user;
    return t->count >= 3 && !loop_timer_is_running(&t->timers[0]);
}

static void repeating_timer_can_stop_itself(void **state)
{
    (void)state;
    struct trail t = { .until = 3 };
    assert_int_equal(loop_new(&t.loop), ERR_OK);
    loop_timer_init(&t.timers[0], t.loop, repeat_fired, &t);
    loop_timer_start_repeating(&t.timers[0], 1);
    assert_true(loop_run_until(t.loop, three_and_timer_off, &t, LIMIT_MS));
    assert_int_equal(t.count, 3);
    loop_free(t.loop);
}

static void first_hook(void *user)
{
    struct trail *t = user;
    note(t, 101);
    if (t->count < 6)
        loop_hook_arm(&t->hooks[1]);
}

static void second_hook(void *user)
{
    struct trail *t = user;
    note(t, 102);
}

static void arm_twice(void *user)
{
    struct trail *t = user;
    note(t, 1);
    loop_hook_arm(&t->hooks[0]);
    loop_hook_arm(&t->hooks[0]);
}

static void hook_runs_once_at_the_end_of_the_round_also_when_armed_by_a_hook(void **state)
{
    (void)state;
    struct trail t = { .until = 4 };
    assert_int_equal(loop_new(&t.loop), ERR_OK);
    loop_hook_init(&t.hooks[0], t.loop, first_hook, &t);
    loop_hook_init(&t.hooks[1], t.loop, second_hook, &t);
    for (int i = 0; i < 2; i++) {
        loop_timer_init(&t.timers[i], t.loop, arm_twice, &t);
        loop_timer_start(&t.timers[i], 1);
    }
    assert_true(loop_run_until(t.loop, enough, &t, LIMIT_MS));
    static const int expected[4] = { 1, 1, 101, 102 };
    assert_int_equal(t.count, 4);
    assert_memory_equal(t.seen, expected, sizeof expected);
    loop_hook_arm(&t.hooks[0]);
    loop_hook_disarm(&t.hooks[0]);
    loop_free(t.loop);
}

static void stop_before_run_is_not_lost(void **state)
{
    (void)state;
    struct loop *loop;
    assert_int_equal(loop_new(&loop), ERR_OK);
    loop_stop(loop);
    loop_run(loop);
    loop_free(loop);
}

static void signal_came(void *user, int signum)
{
    struct trail *t = user;
    t->signum = signum;
    loop_stop(t->loop);
}

/* libuv writes without MSG_NOSIGNAL. */
static void a_write_to_a_peer_that_is_gone_does_not_kill_the_process(void **state)
{
    (void)state;
    struct loop *loop;
    int ends[2];
    assert_int_equal(loop_new(&loop), ERR_OK);
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    assert_int_equal(write(ends[1], "x", 1), -1);
    assert_int_equal(errno, EPIPE);
    close(ends[1]);
    loop_free(loop);
}

static bool never(void *user)
{
    (void)user;
    return false;
}

/* The limit passes before the loop polls: nothing else would wake it. */
static void a_limit_that_is_over_at_once_ends_the_wait(void **state)
{
    struct loop *loop;

    (void)state;
    assert_int_equal(loop_new(&loop), ERR_OK);
    alarm(20);
    assert_false(loop_run_until(loop, never, NULL, 0));
    alarm(0);
    loop_free(loop);
}

static void sigterm_reaches_the_callback(void **state)
{
    (void)state;
    struct trail t = { 0 };
    assert_int_equal(loop_new(&t.loop), ERR_OK);
    assert_int_equal(loop_signals_start(t.loop, signal_came, &t), ERR_OK);
    raise(SIGTERM);
    loop_run(t.loop);
    assert_int_equal(t.signum, SIGTERM);
    loop_free(t.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_fire_in_due_order_and_ties_in_start_order),
        cmocka_unit_test(stopped_timer_never_fires_and_its_memory_may_go),
        cmocka_unit_test(repeating_timer_can_stop_itself),
        cmocka_unit_test(hook_runs_once_at_the_end_of_the_round_also_when_armed_by_a_hook),
        cmocka_unit_test(stop_before_run_is_not_lost),
        cmocka_unit_test(a_write_to_a_peer_that_is_gone_does_not_kill_the_process),
        cmocka_unit_test(a_limit_that_is_over_at_once_ends_the_wait),
        cmocka_unit_test(sigterm_reaches_the_callback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
