/*
 * supervisor: keeps the children of `holdfast dev` running. One that dies is started again: at once
 * if it lived long, else ever more slowly, at most RESTART_APART_MS_MAX between two starts. Each
 * death and each start is a line that says which, why and where its output is.
 */
#ifndef CLIENT_CLI_DEV_SUPERVISOR_H
#define CLIENT_CLI_DEV_SUPERVISOR_H

#include "client/cli/dev/children.h"

#define RESTART_APART_MS     1000u
#define RESTART_APART_MS_MAX 8000u
#define LONG_LIFE_MS         10000u

struct supervisor {
    struct child children[CHILDREN_MAX]; /* Stopped in this order. */
    uint32_t count;
    uint32_t restart_ms; /* Least pause before a start again. */
    /* Until the cluster was ready once, a child that cannot be run, or that died as soon as it had
     * started START_TRIES_MAX times, ends it all: it is set up wrongly. */
    bool ready;
};

#define START_TRIES_MAX 3u

/* Reaps the dead and starts again those that are due. *ret_changed: a process came or went. False:
 * it gives up, and said so; only while it is not ready. */
bool supervisor_watch(struct supervisor *supervisor, bool *ret_changed);
/* Starts a child for the first time. False: it cannot, and said so. */
bool supervisor_start(struct child *child);
/* SIGTERM to one after another, SIGKILL after `patience_ms`. No child is started again. Says which
 * did not end well. */
void supervisor_stop(struct supervisor *supervisor, uint32_t patience_ms);

#endif
