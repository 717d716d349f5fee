/* loop_private: the loop's inside, shared by the files of this folder only. */
#ifndef RUNTIME_LOOP_LOOP_PRIVATE_H
#define RUNTIME_LOOP_LOOP_PRIVATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

struct loop_hook;
struct loop_timer;
struct mailbox;

struct loop {
    uv_loop_t uv;
    uv_async_t wake;      /* A mailbox has messages, or stop was asked for. */
    uv_prepare_t prepare; /* Runs the hooks, right before the loop waits. */
    uv_timer_t alarm;     /* Due when the first timer of the heap is. */
    uint64_t alarm_ms;    /* UINT64_MAX: the alarm is not set. */
    uv_signal_t signals[2];
    bool signals_started;
    void (*signal_fn)(void *user, int signum);
    void *signal_user;
    atomic_bool stop_asked;
    bool (*until)(void *user); /* Of loop_run_until, or NULL. */
    void *until_user;
    struct loop_timer **heap;
    uint32_t heap_count;
    uint32_t heap_capacity;
    uint64_t timer_order;
    struct loop_hook *hooks_first;
    struct loop_hook *hooks_last;
    struct mailbox *mailboxes;
};

#endif
