/*
 * work: what would hold up a loop for longer than its other callers should wait is done by a thread
 * beside it (libuv's pool). These threads give way to the loops of the machine (nice), so that
 * where processors are few, what is large waits and what is small does not.
 */
#ifndef RUNTIME_LOOP_WORK_H
#define RUNTIME_LOOP_WORK_H

#include "runtime/loop/loop.h"

struct work {
    void (*run)(void *user);  /* In a thread: touches nothing that the loop touches meanwhile. */
    void (*done)(void *user); /* On the loop, once `run` has ended. */
    void *user;
};

/* Copies `work`. `done` is called once, and never from within this call; loop_free waits for it.
 * How many wait for a thread is the caller's to bound. */
void work_start(struct loop *loop, const struct work *work);

#endif
