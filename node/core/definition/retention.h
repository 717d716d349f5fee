/*
 * retention: how long the shard keeps its events: what the definition of kind event_retention and
 * name `events` says (docs/events.md), or the default.
 */
#ifndef NODE_CORE_DEFINITION_RETENTION_H
#define NODE_CORE_DEFINITION_RETENTION_H

#include "node/core/handler/handler.h"

#define RETENTION_NAME "events"

struct retention {
    uint64_t keep_ms;
    uint64_t events_max;
};

/* Looks through the rows of definitions, at apply. ERR_NEED. */
NODISCARD err retention_find(struct apply_context *context, struct retention *ret_retention);
/* It holds from here on. */
void retention_keep(struct meta *meta, const struct retention *retention);

#endif
