/*
 * timer: a loop's timers. Each operation is O(log n). A timer's memory is the caller's and may be
 * reused right after stop. On the loop's thread only.
 */
#ifndef RUNTIME_LOOP_TIMER_H
#define RUNTIME_LOOP_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#define LOOP_TIMERS_MAX 1048576u /* Running at once; beyond it is a CHECK. */

struct loop;

struct loop_timer {
    void (*fn)(void *user);
    void *user;
    struct loop *loop;
    uint64_t due_ms;
    uint64_t order;     /* Timers due together fire in the order they were started. */
    uint32_t period_ms; /* 0: one shot. */
    uint32_t place;     /* 1 + index in the heap; 0: not running. */
};

void loop_timer_init(struct loop_timer *timer, struct loop *loop, void (*fn)(void *user),
                     void *user);
/* Starts or restarts. fn may stop or restart its own timer, and free its memory after stop. */
void loop_timer_start(struct loop_timer *timer, uint64_t delay_ms);
void loop_timer_start_repeating(struct loop_timer *timer, uint32_t period_ms);
/* Allowed when it is not running. */
void loop_timer_stop(struct loop_timer *timer);
bool loop_timer_is_running(const struct loop_timer *timer);

#endif
