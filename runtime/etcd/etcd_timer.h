/*
 * etcd_timer: many timers over one uv_timer_t, so that the objects that hold them can be freed at
 * once instead of in a close callback. Few are armed at a time; starting one walks the list.
 */
#ifndef RUNTIME_ETCD_ETCD_TIMER_H
#define RUNTIME_ETCD_ETCD_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

struct etcd_timer {
    struct etcd_timer *next;
    bool armed;
    uint64_t due_ms;
    void (*fire)(struct etcd_timer *timer);
};

struct etcd_timers {
    uv_timer_t uv;
    struct etcd_timer *first; /* By due time. */
    bool closing;
};

/* Milliseconds of the monotonic clock, read now (uv_now is as old as the loop's last turn). */
uint64_t etcd_now_ms(void);

void etcd_timers_init(struct etcd_timers *timers, uv_loop_t *loop);
/* timers->uv.data is the caller's; `closed` may free the struct. */
void etcd_timers_deinit(struct etcd_timers *timers, uv_close_cb closed);

/* Arms it, again if it is armed. `fire` may start, stop and free any timer. */
void etcd_timer_start(struct etcd_timers *timers, struct etcd_timer *timer, uint64_t after_ms);
void etcd_timer_stop(struct etcd_timers *timers, struct etcd_timer *timer);

#endif
