/*
 * trace_cursor: where Trace stands in the history of an item. The next step is on one of two
 * shards: that of the player who had the item last, or that of the player to whom it went.
 */
#ifndef ROUTER_CORE_TRACE_CURSOR_H
#define ROUTER_CORE_TRACE_CURSOR_H

#include "holdfast/v1/error.pb-c.h"
#include "holdfast/v1/inventory.pb-c.h"
#include "runtime/base/arena.h"
#include "runtime/base/err.h"

struct trace_cursor {
    uint32_t step;  /* Told last; 0: none. */
    uint32_t shard; /* To ask next. */
    uint32_t other; /* To ask if that has none; the same shard: none. */
};

/* From a request: its cursor, or else the beginning, on the shard that the UID names (it may be
 * one that the cluster does not have). ERR_INVALID: *ret_detail says which field is wrong. */
NODISCARD err trace_cursor_begin(const Holdfast__V1__TraceItemRequest *request,
                                 uint32_t shard_count, struct arena *arena,
                                 struct trace_cursor *ret_cursor,
                                 Holdfast__V1__ErrorDetail *ret_detail);
/* Text in the arena. */
char *trace_cursor_print(const struct trace_cursor *cursor, struct arena *arena);

#endif
