/*
 * event_consumer: reads a named consumer for a call that names it in place of a cursor
 * (EventService/Poll and Subscribe): its filters, and how far it has committed.
 */
#ifndef ROUTER_RPC_EVENTS_EVENT_CONSUMER_H
#define ROUTER_RPC_EVENTS_EVENT_CONSUMER_H

#include "holdfast/v1/events.pb-c.h"
#include "router/rpc/events/event_ask.h"
#include "router/rpc/request/request.h"

/* What the call asks for, until it is known. */
struct event_consumer_wish {
    struct request *request;
    struct event_ask *ask; /* Its filters become the consumer's. */
    struct slice cursor;   /* Of the request; empty: what is committed. */
    struct event_cursor *cursor_read;
    uint64_t version; /* The consumer's. */
    void (*done)(void *user);
    void *user;
};

/* The entity whose shard a consumer lives in, in the arena. */
struct slice event_consumer_entity(const char *name, struct arena *arena);

/* Where the call begins: without a consumer `done` comes at once. With one the owner of its shard
 * is asked first; if that fails the request fails as well, without `done`. Sets request->state and
 * request->cancel meanwhile. `wish` must stay until then. */
void event_consumer_begin(struct event_consumer_wish *wish);

#endif
