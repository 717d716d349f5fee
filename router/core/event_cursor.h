/*
 * event_cursor: how far a reader of events knows each shard, as one opaque text (docs/events.md):
 * base64 of the numbers and their hash. The hash finds cursors that were cut or mixed up. They are
 * no secrets: a place that a shard never had is told by that shard, as a gap.
 */
#ifndef ROUTER_CORE_EVENT_CURSOR_H
#define ROUTER_CORE_EVENT_CURSOR_H

#include "holdfast/v1/error.pb-c.h"
#include "runtime/base/arena.h"
#include "runtime/base/err.h"

#define EVENT_PLACE_BYTES 20u /* As nodes tell a place: sorts as the events do. */

/* Of one shard. */
struct event_known {
    bool any;      /* False: nothing is known, so it begins with the oldest event. */
    uint32_t life; /* Of the shard, which a restore from a backup ends. */
    uint8_t place[EVENT_PLACE_BYTES];
};

struct event_cursor {
    uint32_t shard_count;
    uint32_t turn;             /* The shard whose events come first in the next page. */
    struct event_known *known; /* By shard; in the arena. */
};

/* `text` empty: nothing is known. ERR_INVALID: not a cursor of a cluster with so many shards;
 * *ret_detail (texts in the arena) says so. */
NODISCARD err event_cursor_parse(struct slice text, uint32_t shard_count, struct arena *arena,
                                 struct event_cursor *ret_cursor,
                                 Holdfast__V1__ErrorDetail *ret_detail);
/* Text in the arena. */
char *event_cursor_print(const struct event_cursor *cursor, struct arena *arena);

#endif
