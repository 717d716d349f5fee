/*
 * earlier_life: a node that was killed and is started at once finds its data directory locked and
 * its ports taken, until the kernel has cleared its earlier life away. It waits for that, but not
 * for long: another node on the same directory is a mistake that must be told.
 */
#ifndef NODE_IO_PROCESS_EARLIER_LIFE_H
#define NODE_IO_PROCESS_EARLIER_LIFE_H

#include <stdbool.h>

#include "runtime/base/log.h"
#include "runtime/loop/loop.h"

#define EARLIER_LIFE_PATIENCE_MS 10000u

/* Zeroed: nothing was waited for yet. */
struct earlier_life {
    const struct log *log;
    struct loop *loop;
    uint64_t until_ms; /* 0: it does not wait. */
    char why[128];     /* "in use by process 4240"; empty: it does not wait. */
};

/* `why` says which directory is in use, behind its last colon by which process; logged once. Starts
 * `timer` for another try. False: EARLIER_LIFE_PATIENCE_MS are over since the first try. */
bool earlier_life_wait(struct earlier_life *life, struct loop_timer *timer, const char *why);
/* It is over: `why` is empty again. */
void earlier_life_end(struct earlier_life *life);

#endif
