/*
 * event_waits: calls of ListNodeEvents that wait until there is an event, so that a
 * watcher learns of it at once and asks seldom. On the loop's thread, event_waits_added aside.
 * docs/events.md.
 */
#ifndef NODE_IO_PROCESS_EVENT_WAITS_H
#define NODE_IO_PROCESS_EVENT_WAITS_H

#include "runtime/link/call.h"
#include "runtime/loop/loop.h"

#define EVENT_WAITS_MAX    1024u /* Calls; more are answered at once. */
#define EVENT_WAIT_MS_MAX  60000u
#define EVENT_WAIT_TICK_MS 50u /* Waits end up to this late. */

struct event_waits;

struct event_waits_options {
    struct loop *loop;
    /* Appends the answer. False: there is nothing to tell, and event_waits_added will be called
     * when there is. */
    bool (*list)(void *user, struct slice request, struct buf *out);
    /* Ends a call; an empty body with `known` false: it was given up. */
    void (*answer)(void *user, const struct call_reply *reply, bool known, struct slice body);
    void *user;
};

struct event_waits *event_waits_new(const struct event_waits_options *options);
/* Calls that wait are not answered. Only after the last event_waits_added. NULL is fine. */
void event_waits_free(struct event_waits *waits);

/* Answers now or later. */
void event_waits_ask(struct event_waits *waits, const struct call_reply *reply,
                     struct slice request);
/* Any thread: list may have something to tell. */
void event_waits_added(struct event_waits *waits);
/* Gives up that call. False: it does not wait here. */
bool event_waits_cancel(struct event_waits *waits, const struct call_reply *reply);
/* Gives up all calls of a link that has closed. */
void event_waits_cancel_link(struct event_waits *waits, uint64_t generation);

#endif
