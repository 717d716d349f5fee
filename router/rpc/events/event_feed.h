/*
 * event_feed: which shards have more events, as their nodes tell it (ListEventNews): one question
 * at each node, held there until there is something to tell, whatever number of streams follows the
 * events. A hint alone: who follows a shard reads it from its own cursor. docs/events.md.
 */
#ifndef ROUTER_RPC_EVENTS_EVENT_FEED_H
#define ROUTER_RPC_EVENTS_EVENT_FEED_H

#include "router/rpc/request/router_state.h"

struct event_feed;

/* Asks no node before it is started. */
struct event_feed *event_feed_new(const struct router *router);
/* NULL is allowed. */
void event_feed_free(struct event_feed *feed);

/* `news` for each shard that may have more events; of a node that was not asked before, or did not
 * answer, for all those that it serves. May stop the feed. */
void event_feed_start(struct event_feed *feed, void (*news)(void *user, uint32_t shard),
                      void *user);
void event_feed_stop(struct event_feed *feed);

#endif
