/*
 * incident_waits: calls that wait until there is something to tell, so that who asks learns of it
 * at once and asks seldom: those of ListNodeIncidents for an incident, those of ListEventNews for
 * events. On the loop's thread, incident_waits_added aside. docs/incidents.md.
 */
#ifndef NODE_IO_PROCESS_INCIDENT_WAITS_H
#define NODE_IO_PROCESS_INCIDENT_WAITS_H

#include "runtime/link/call.h"
#include "runtime/loop/loop.h"

#define INCIDENT_WAITS_MAX    1024u /* Calls; more are answered at once. */
#define INCIDENT_WAIT_MS_MAX  60000u
#define INCIDENT_WAIT_TICK_MS 50u /* Waits end up to this late. */

struct incident_waits;

struct incident_waits_options {
    struct loop *loop;
    /* Appends the answer. False: there is nothing to tell, and incident_waits_added will be called
     * when there is. */
    bool (*list)(void *user, struct slice request, struct buf *out);
    /* Ends a call; an empty body with `known` false: it was given up. */
    void (*answer)(void *user, const struct call_reply *reply, bool known, struct slice body);
    void *user;
};

struct incident_waits *incident_waits_new(const struct incident_waits_options *options);
/* Calls that wait are not answered. Only after the last incident_waits_added. NULL is fine. */
void incident_waits_free(struct incident_waits *waits);

/* Answers now or later. */
void incident_waits_ask(struct incident_waits *waits, const struct call_reply *reply,
                        struct slice request);
/* Any thread: list may have something to tell. */
void incident_waits_added(struct incident_waits *waits);
/* Gives up that call. False: it does not wait here. */
bool incident_waits_cancel(struct incident_waits *waits, const struct call_reply *reply);
/* Gives up all calls of a link that has closed. */
void incident_waits_cancel_link(struct incident_waits *waits, uint64_t generation);

#endif
