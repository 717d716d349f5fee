/*
 * incident_cursor: how far a reader of incidents knows those of each node: "replica.life.after" for
 * each, separated by commas. docs/incidents.md.
 */
#ifndef ROUTER_CORE_INCIDENT_CURSOR_H
#define ROUTER_CORE_INCIDENT_CURSOR_H

#include "holdfast/v1/error.pb-c.h"
#include "runtime/base/arena.h"
#include "runtime/base/err.h"
#include "runtime/cluster/cluster_record.h"

struct incident_place {
    uint64_t replica_id;
    uint64_t life;  /* Of the node's ring; another one means that it was restarted. */
    uint64_t after; /* Number of the last incident that is known. */
};

struct incident_cursor {
    struct incident_place places[CLUSTER_NODES_MAX]; /* Learned first comes first. */
    uint32_t count;
};

/* `text` empty: nothing is known. ERR_INVALID: not a cursor; *ret_detail (texts in the arena) says
 * so, and *ret_cursor is empty. */
NODISCARD err incident_cursor_parse(struct slice text, struct arena *arena,
                                    struct incident_cursor *ret_cursor,
                                    Holdfast__V1__ErrorDetail *ret_detail);
/* Text in the arena. */
char *incident_cursor_print(const struct incident_cursor *cursor, struct arena *arena);

/* NULL: nothing is known of that node. */
const struct incident_place *incident_cursor_find(const struct incident_cursor *cursor,
                                                  uint64_t replica_id);
/* The node's ring of that life is known up to `after`. Returns whether another life of it was known
 * before. Of more nodes than fit, the one that was learned first is forgotten. */
bool incident_cursor_advance(struct incident_cursor *cursor, const struct incident_place *place);

#endif
