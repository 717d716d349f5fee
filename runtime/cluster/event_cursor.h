/*
 * event_cursor: how far a reader of events knows each shard, as one opaque text (docs/events.md):
 * base64 of the numbers and their hash. The hash finds cursors that were cut or mixed up. They are
 * no secrets: a place that a shard never had is told by that shard, as a gap. Routers give cursors
 * out, and nodes keep those that consumers commit. Pure.
 */
#ifndef RUNTIME_CLUSTER_EVENT_CURSOR_H
#define RUNTIME_CLUSTER_EVENT_CURSOR_H

#include "runtime/base/arena.h"
#include "runtime/base/buf.h"

#define EVENT_CURSOR_PLACE_BYTES 20u /* As nodes tell a place: sorts as the events do. */

/* Of one shard. */
struct event_known {
    bool any;      /* False: nothing is known, so it begins with the oldest event. */
    uint32_t life; /* Of the shard, which a restore from a backup ends. */
    uint8_t place[EVENT_CURSOR_PLACE_BYTES];
    uint64_t passed;    /* How many events of the shard stand up to there, and 1; 0: not known. */
    uint64_t passed_ms; /* All that was committed before that moment does. With `passed` alone. */
};

struct event_cursor {
    uint32_t shard_count;
    uint32_t turn;             /* The shard whose events come first in the next page. */
    bool counts;               /* A consumer's: it has `passed` where that is known. */
    struct event_known *known; /* By shard; in the arena. */
};

/* Of no shard anything is known. */
void event_cursor_init(struct event_cursor *cursor, uint32_t shard_count, struct arena *arena);
/* ERR_INVALID: not a cursor of a cluster with so many shards (0: with however many);
 * *ret_cursor is untouched. */
NODISCARD err event_cursor_decode(struct slice text, uint32_t shard_count, struct arena *arena,
                                  struct event_cursor *ret_cursor);
/* Text in the arena. */
char *event_cursor_print(const struct event_cursor *cursor, struct arena *arena);

/* Whether `later` is before `earlier` in some shard. Lives of a shard have no order: a place of
 * another life is not before one of this. Both are of as many shards (CHECK). */
bool event_cursor_goes_back(const struct event_cursor *earlier, const struct event_cursor *later);
/* All that was committed before this moment is known, in the shards first to last; 0: not known. */
uint64_t event_cursor_passed_ms(const struct event_cursor *cursor, uint32_t first, uint32_t last);

#endif
