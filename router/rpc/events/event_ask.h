/*
 * event_ask: what a reader of events asks of each shard, and whether it may: for EventService/Poll
 * and Subscribe, whose requests say it alike (docs/events.md).
 */
#ifndef ROUTER_RPC_EVENTS_EVENT_ASK_H
#define ROUTER_RPC_EVENTS_EVENT_ASK_H

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/events.pb-c.h"
#include "router/core/event_cursor_text.h"

#define EVENT_ASK_ALL_SHARDS UINT32_MAX

/* Which events it wants. Texts and `kinds` are the request's. */
struct event_ask {
    const Holdfast__V1__EventKind *kinds;
    size_t kind_count;
    const char *entity_prefix, *entity; /* Empty: of all. */
    const char *consumer;               /* Whose filters hold in place of these; empty: none. */
};

/* ERR_INVALID: *ret_detail names the field, with texts in the arena. */
NODISCARD err event_ask_check(const struct event_ask *ask, struct arena *arena,
                              Holdfast__V1__ErrorDetail *ret_detail);
/* The one shard that can have such events, or EVENT_ASK_ALL_SHARDS. */
uint32_t event_ask_shard(const struct event_ask *ask, uint32_t shard_count);

/* The request to a shard of which `known` is known, in the arena. */
struct slice event_ask_encode(const struct event_ask *ask, uint32_t shard, uint32_t limit,
                              const struct event_known *known, struct arena *arena);
/* Its answer, in the arena. NULL: it cannot be read, or a place in it cannot. */
const Holdfast__Internal__V1__ListShardEventsResponse *event_ask_decode(struct slice body,
                                                                        struct arena *arena);
/* Takes the first `count` events of an answer for known, or all that it says if that is all. */
void event_ask_advance(const Holdfast__Internal__V1__ListShardEventsResponse *said, size_t count,
                       struct event_known *known);
/* What a reader is told of an answer with a gap, in the arena. */
Holdfast__V1__EventGap *event_ask_gap(const Holdfast__Internal__V1__ListShardEventsResponse *said,
                                      uint32_t shard, struct arena *arena);

#endif
