/* Timers: a binary heap of pointers over one libuv timer, because a uv_timer_t may not be freed
 * before its close callback, and callers want to stop a timer and free its memory at once. */
#include "runtime/loop/timer.h"

#include <stdlib.h>

#include "runtime/base/check.h"
#include "runtime/loop/loop_private.h"

static bool earlier(const struct loop_timer *a, const struct loop_timer *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->order < b->order;
}

static void put(struct loop *loop, uint32_t index, struct loop_timer *timer)
{
    loop->heap[index] = timer;
    timer->place = index + 1;
}

static void sift_up(struct loop *loop, uint32_t index, struct loop_timer *timer)
{
    while (index > 0 && earlier(timer, loop->heap[(index - 1) / 2])) {
        put(loop, index, loop->heap[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    put(loop, index, timer);
}

static void sift_down(struct loop *loop, uint32_t index, struct loop_timer *timer)
{
    for (;;) {
        uint32_t child = 2 * index + 1;
        if (child + 1 < loop->heap_count && earlier(loop->heap[child + 1], loop->heap[child]))
            child++;
        if (child >= loop->heap_count || !earlier(loop->heap[child], timer))
            break;
        put(loop, index, loop->heap[child]);
        index = child;
    }
    put(loop, index, timer);
}

static void take_out(struct loop_timer *timer)
{
    struct loop *loop = timer->loop;
    uint32_t index = timer->place - 1;

    CHECK(index < loop->heap_count && loop->heap[index] == timer);
    timer->place = 0;
    struct loop_timer *last = loop->heap[--loop->heap_count];
    if (last == timer)
        return;
    if (index > 0 && earlier(last, loop->heap[(index - 1) / 2]))
        sift_up(loop, index, last);
    else
        sift_down(loop, index, last);
}

static void alarm_rang(uv_timer_t *alarm);

/* An alarm that rings too early does no harm, so it is only ever set earlier. */
static void set_alarm(struct loop *loop)
{
    if (loop->heap_count == 0 || loop->heap[0]->due_ms >= loop->alarm_ms)
        return;
    uint64_t now_ms = uv_now(&loop->uv);
    uint64_t due_ms = loop->heap[0]->due_ms;
    loop->alarm_ms = due_ms;
    CHECK(uv_timer_start(&loop->alarm, alarm_rang, due_ms > now_ms ? due_ms - now_ms : 0, 0) == 0);
}

static void insert(struct loop_timer *timer, uint64_t due_ms)
{
    struct loop *loop = timer->loop;

    if (loop->heap_count == loop->heap_capacity) {
        CHECK(loop->heap_capacity < LOOP_TIMERS_MAX);
        loop->heap_capacity = loop->heap_capacity > 0 ? 2 * loop->heap_capacity : 64;
        loop->heap = mem_realloc(loop->heap, loop->heap_capacity * sizeof *loop->heap);
    }
    timer->due_ms = due_ms;
    timer->order = loop->timer_order++;
    sift_up(loop, loop->heap_count++, timer);
}

static void alarm_rang(uv_timer_t *alarm)
{
    struct loop *loop = CONTAINER_OF(alarm, struct loop, alarm);
    uint64_t now_ms = uv_now(&loop->uv);
    uint64_t order_end = loop->timer_order;

    loop->alarm_ms = UINT64_MAX;
    /* Timers started by these callbacks wait for the next round, even when due at once. */
    while (loop->heap_count > 0 && loop->heap[0]->due_ms <= now_ms &&
           loop->heap[0]->order < order_end) {
        struct loop_timer *timer = loop->heap[0];
        take_out(timer);
        if (timer->period_ms > 0)
            insert(timer, now_ms + timer->period_ms);
        timer->fn(timer->user);
    }
    set_alarm(loop);
}

void loop_timer_init(struct loop_timer *timer, struct loop *loop, void (*fn)(void *user),
                     void *user)
{
    *timer = (struct loop_timer){ .fn = fn, .user = user, .loop = loop };
}

static void start(struct loop_timer *timer, uint64_t delay_ms, uint32_t period_ms)
{
    if (timer->place > 0)
        take_out(timer);
    timer->period_ms = period_ms;
    insert(timer, uv_now(&timer->loop->uv) + delay_ms);
    set_alarm(timer->loop);
}

void loop_timer_start(struct loop_timer *timer, uint64_t delay_ms)
{
    start(timer, delay_ms, 0);
}

void loop_timer_start_repeating(struct loop_timer *timer, uint32_t period_ms)
{
    CHECK(period_ms > 0);
    start(timer, period_ms, period_ms);
}

void loop_timer_stop(struct loop_timer *timer)
{
    if (timer->place > 0)
        take_out(timer);
}

bool loop_timer_is_running(const struct loop_timer *timer)
{
    return timer->place > 0;
}
