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
/* The kernel closes a killed process's files one after another: its lock goes before some ports. */
#define EARLIER_LIFE_PORTS_MS 1000u

/* Zeroed: nothing was waited for yet. */
struct earlier_life {
    const struct log *log;
    struct loop *loop;
    uint64_t until_ms;       /* 0: it has not waited for the directory. */
    uint64_t ports_until_ms; /* 0: it has not waited for a port of a free directory. */
    char why[128];           /* "in use by process 4240"; empty: it does not wait. */
};

/* `why` says which directory is in use, behind its last colon by which process; logged once. Starts
 * `timer` for another try. False: EARLIER_LIFE_PATIENCE_MS are over since the first try. */
bool earlier_life_wait(struct earlier_life *life, struct loop_timer *timer, const char *why);
/* The same for a port that is taken: while the directory at `path` is in use, and for
 * EARLIER_LIFE_PORTS_MS after it was first seen free. `port` is the port's name in logs. */
bool earlier_life_wait_for_port(struct earlier_life *life, struct loop_timer *timer,
                                const char *path, const char *port);
/* It is over: `why` is empty again. */
void earlier_life_end(struct earlier_life *life);

#endif
