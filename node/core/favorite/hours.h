/*
 * hours: how many edges that stand were made in which hour, or how much was added to a counter in
 * it, for the hours of the last seven days: what a count of 24 hours or 7 days is added up from. An
 * hour is that of the entry that made the edge, or added, by the clock of its shard's owner; no
 * receiver's clock ever moves one. Pure.
 */
#ifndef NODE_CORE_FAVORITE_HOURS_H
#define NODE_CORE_FAVORITE_HOURS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"

#define HOURS_MAX 168u /* Seven days. */
#define HOURS_DAY 24u
#define HOUR_MS   3600000u

/* Of no hour is more counted, nor of all together. */
#define HOURS_COUNT_MAX ((uint64_t)INT64_MAX)

struct hour_count {
    uint64_t hour; /* Since 1970; below 2^32. As wide as the count: lists are compared as bytes. */
    uint64_t count;
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
/* Likewise `by` more. */
void hours_add_many(struct hours *hours, uint32_t hour, uint64_t by);
/* One less, if that hour is kept and has any. */
void hours_remove(struct hours *hours, uint32_t hour);
/* Adds `after` and takes `before` away, for the hours that are kept then: those within seven days
 * of the newest of all three. Never below zero. */
void hours_replace(struct hours *hours, const struct hours *before, const struct hours *after);
/* Forgets the oldest until all come to `most` or less. */
void hours_trim(struct hours *hours, uint64_t most);
/* What was made in `hour`, one of the `width` - 1 before it, or later. */
uint64_t hours_sum(const struct hours *hours, uint32_t hour, uint32_t width);

void hours_encode(const struct hours *hours, struct buf *out);
/* `reader` is bad where there are none. */
void hours_read(struct reader *reader, struct hours *ret_hours);

#endif
