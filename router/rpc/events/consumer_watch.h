/*
 * consumer_watch: how far the consumers of events are behind, for metrics and alerts: the router
 * looks through all shards about every half a minute, one after the other. A consumer whose program
 * has died is found by it, too. docs/events.md.
 */
#ifndef ROUTER_RPC_EVENTS_CONSUMER_WATCH_H
#define ROUTER_RPC_EVENTS_CONSUMER_WATCH_H

#include "router/rpc/request/router_state.h"

struct consumer_watch;

/* As of the last look at all shards; of a shard that did not answer, as of the look before. */
struct consumer_lag {
    uint32_t consumers;
    uint64_t lag_ms;  /* Of the one that is furthest behind: how old what it has not read may be. */
    uint64_t kept_ms; /* The shortest time for which a shard keeps its events; 0: not known. */
};

/* Looks at nothing before it is started. */
struct consumer_watch *consumer_watch_new(const struct router *router);
/* NULL is allowed. */
void consumer_watch_free(struct consumer_watch *watch);
void consumer_watch_start(struct consumer_watch *watch);
struct consumer_lag consumer_watch_lag(const struct consumer_watch *watch);
/* How much of the time that events are kept is gone for that consumer: at 1 it loses some. */
double consumer_lag_ratio(const struct consumer_lag *lag);

#endif
