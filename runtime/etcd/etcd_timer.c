#include "runtime/etcd/etcd_timer.h"

#include <stddef.h>

#include "runtime/base/check.h"

uint64_t etcd_now_ms(void)
{
    return uv_hrtime() / 1000000;
}

static void timers_arm(struct etcd_timers *timers);

static void timers_fire(uv_timer_t *uv)
{
    struct etcd_timers *timers = CONTAINER_OF(uv, struct etcd_timers, uv);
    uint64_t now_ms = etcd_now_ms();

    while (!timers->closing && timers->first != NULL && timers->first->due_ms <= now_ms) {
        struct etcd_timer *timer = timers->first;
        timers->first = timer->next;
        timer->armed = false;
        timer->fire(timer);
    }
    timers_arm(timers);
}

static void timers_arm(struct etcd_timers *timers)
{
    if (timers->closing)
        return;
    if (timers->first == NULL) {
        uv_timer_stop(&timers->uv);
        return;
    }
    uint64_t now_ms = etcd_now_ms();
    uint64_t due_ms = timers->first->due_ms;
    uv_update_time(timers->uv.loop);
    CHECK(uv_timer_start(&timers->uv, timers_fire, due_ms > now_ms ? due_ms - now_ms : 0, 0) == 0);
}

void etcd_timers_init(struct etcd_timers *timers, uv_loop_t *loop)
{
    timers->first = NULL;
    timers->closing = false;
    CHECK(uv_timer_init(loop, &timers->uv) == 0);
}

void etcd_timers_deinit(struct etcd_timers *timers, uv_close_cb closed)
{
    timers->closing = true;
    uv_close((uv_handle_t *)&timers->uv, closed);
}

static void timer_unlink(struct etcd_timers *timers, struct etcd_timer *timer)
{
    struct etcd_timer **at = &timers->first;

    while (*at != NULL && *at != timer)
        at = &(*at)->next;
    CHECK(*at == timer);
    *at = timer->next;
    timer->armed = false;
}

void etcd_timer_start(struct etcd_timers *timers, struct etcd_timer *timer, uint64_t after_ms)
{
    struct etcd_timer **at = &timers->first;

    CHECK(timer->fire != NULL);
    if (timer->armed)
        timer_unlink(timers, timer);
    timer->due_ms = etcd_now_ms() + after_ms;
    at = &timers->first;
    while (*at != NULL && (*at)->due_ms <= timer->due_ms)
        at = &(*at)->next;
    timer->next = *at;
    *at = timer;
    timer->armed = true;
    timers_arm(timers);
}

void etcd_timer_stop(struct etcd_timers *timers, struct etcd_timer *timer)
{
    if (!timer->armed)
        return;
    timer_unlink(timers, timer);
    timers_arm(timers);
}
