/* event_cursor_text: the cursor in a request for events, and what a caller is told of a bad one. */
#ifndef ROUTER_CORE_EVENT_CURSOR_TEXT_H
#define ROUTER_CORE_EVENT_CURSOR_TEXT_H

#include "holdfast/v1/error.pb-c.h"
#include "runtime/cluster/event_cursor.h"

/* `text` empty: nothing is known. ERR_INVALID: not a cursor of a cluster with so many shards;
 * *ret_detail (texts in the arena) says so. */
NODISCARD err event_cursor_parse(struct slice text, uint32_t shard_count, struct arena *arena,
                                 struct event_cursor *ret_cursor,
                                 Holdfast__V1__ErrorDetail *ret_detail);

#endif
