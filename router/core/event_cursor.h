/*
 * event_cursor: how far a reader of events knows those of each node: "replica.life.after" for each,
 * separated by commas. docs/events.md.
 */
#ifndef ROUTER_CORE_EVENT_CURSOR_H
#define ROUTER_CORE_EVENT_CURSOR_H

#include "holdfast/v1/error.pb-c.h"
#include "runtime/base/arena.h"
#include "runtime/base/err.h"
#include "runtime/cluster/cluster_record.h"

struct event_place {
    uint64_t replica_id;
    uint64_t life;  /* Of the node's ring; another one means that it was restarted. */
    uint64_t after; /* Number of the last event that is known. */
};

struct event_cursor {
    struct event_place places[CLUSTER_NODES_MAX]; /* Learned first comes first. */
    uint32_t count;
};

/* `text` empty: nothing is known. ERR_INVALID: not a cursor; *ret_detail (texts in the arena) says
 * so, and *ret_cursor is empty. */
NODISCARD err event_cursor_parse(struct slice text, struct arena *arena,
                                 struct event_cursor *ret_cursor,
                                 Holdfast__V1__ErrorDetail *ret_detail);
/* Text in the arena. */
char *event_cursor_print(const struct event_cursor *cursor, struct arena *arena);

/* NULL: nothing is known of that node. */
const struct event_place *event_cursor_find(const struct event_cursor *cursor, uint64_t replica_id);
/* The node's ring of that life is known up to `after`. Returns whether another life of it was known
 * before. Of more nodes than fit, the one that was learned first is forgotten. */
bool event_cursor_advance(struct event_cursor *cursor, const struct event_place *place);

#endif
