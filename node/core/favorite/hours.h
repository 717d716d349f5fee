/*
 * hours: how many edges that stand were made in which hour, for the hours of the last seven days:
 * what a count of 24 hours or 7 days is added up from. An hour is that of the entry that made the
 * edge, by the clock of its shard's owner; no receiver's clock ever moves one. Pure.
 */
#ifndef NODE_CORE_FAVORITE_HOURS_H
#define NODE_CORE_FAVORITE_HOURS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"

#define HOURS_MAX 168u /* Seven days. */
#define HOURS_DAY 24u
#define HOUR_MS   3600000u

struct hour_count {
    uint32_t hour; /* Since 1970. */
    uint32_t count;
};

/* Ascending; counts are at least 1. Zeroed: none. */
struct hours {
    uint32_t count;
    struct hour_count list[HOURS_MAX];
};

static inline uint32_t hour_of(uint64_t unix_ms)
{
    return (uint32_t)(unix_ms / HOUR_MS);
}

/* Forgets what is HOURS_MAX hours or more before `hour`. */
void hours_prune(struct hours *hours, uint32_t hour);
/* One more in `hour`. Older ones are forgotten first; an hour that is too old itself is not kept.
 */
void hours_add(struct hours *hours, uint32_t hour);
/* One less, if that hour is kept and has any. */
void hours_remove(struct hours *hours, uint32_t hour);
/* Adds `after` and takes `before` away, for the hours that are kept then: those within seven days
 * of the newest of all three. Never below zero. */
void hours_replace(struct hours *hours, const struct hours *before, const struct hours *after);
/* What was made in `hour`, one of the `width` - 1 before it, or later. */
uint64_t hours_sum(const struct hours *hours, uint32_t hour, uint32_t width);

void hours_encode(const struct hours *hours, struct buf *out);
/* `reader` is bad where there are none. */
void hours_read(struct reader *reader, struct hours *ret_hours);

#endif
