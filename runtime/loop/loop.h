/*
 * loop: one event loop (libuv) owned by one thread, with what every shell needs around it: a
 * clock, timers (timer.h), work at the end of a round, and signals. Knows no
 * protocol. Everything here is for the owning thread only, except loop_stop (DESIGN section 9).
 *
 * One round: timers -> end-of-round hooks -> wait for input -> input callbacks, mailboxes. Hooks
 * run just before the loop would sleep, so whatever a round produced leaves in one write.
 */
#ifndef RUNTIME_LOOP_LOOP_H
#define RUNTIME_LOOP_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/err.h"
#include "runtime/loop/timer.h"

struct loop;
struct uv_loop_s;

/* A loop belongs to the thread that runs it; make it on that thread or before the thread starts.
 * SIGPIPE is ignored in the whole process from then on: libuv writes to peers that may be gone.
 * ERR_IO: the kernel refused a descriptor. */
NODISCARD err loop_new(struct loop **ret_loop);
/* After loop_run returned, when everything using the loop has been stopped. Pending libuv closes
 * are carried out. NULL is allowed. */
void loop_free(struct loop *loop);

/* Until loop_stop. A stop that came before run makes run return after one round. */
void loop_run(struct loop *loop);
/* From any thread, also from a signal handler. The current round is finished first. */
void loop_stop(struct loop *loop);
/* Runs rounds until done(user) holds or `timeout_ms` has passed; returns whether it holds. For
 * start-up, teardown and tests; never from inside a callback of the same loop. */
bool loop_run_until(struct loop *loop, bool (*done)(void *user), void *user, uint64_t timeout_ms);

/* Milliseconds of a monotonic clock, as of the start of this round. */
uint64_t loop_now_ms(const struct loop *loop);
/* Milliseconds since 1970, read now. May jump; never for intervals. Any thread. */
uint64_t loop_wall_ms(void);
/* Nanoseconds of the monotonic clock, read now; for measuring. Any thread. */
uint64_t loop_clock_ns(void);

/* Nanoseconds of processor time of this thread, read now: what work cost, whatever else the machine
 * did meanwhile. */
uint64_t loop_thread_ns(void);

/* For shells that add their own libuv handles (sockets, curl). */
struct uv_loop_s *loop_uv(struct loop *loop);

/* ---- hooks: work once at the end of this round ---- */
struct loop_hook {
    void (*fn)(void *user);
    void *user;
    struct loop *loop;
    struct loop_hook *next;
    struct loop_hook *previous;
    bool armed;
    bool late;
};

void loop_hook_init(struct loop_hook *hook, struct loop *loop, void (*fn)(void *user), void *user);
/* A late hook runs once no other is armed: it carries out what they asked for, in one go. */
void loop_hook_init_late(struct loop_hook *hook, struct loop *loop, void (*fn)(void *user),
                         void *user);
/* Runs fn once before the loop next waits. Arming twice is one run; arming from a hook runs it
 * in the same round. */
void loop_hook_arm(struct loop_hook *hook);
void loop_hook_disarm(struct loop_hook *hook);

/* SIGTERM and SIGINT call fn(user, signal number) on this loop, instead of ending the process.
 * Once per loop. */
NODISCARD err loop_signals_start(struct loop *loop, void (*fn)(void *user, int signum), void *user);

#endif
