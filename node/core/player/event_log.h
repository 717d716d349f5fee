/*
 * event_log: what a shard knows of its events besides their rows (node/core/handler/event.h): which
 * are kept, and for how long. A part of the meta row.
 */
#ifndef NODE_CORE_PLAYER_EVENT_LOG_H
#define NODE_CORE_PLAYER_EVENT_LOG_H

#include "runtime/base/buf.h"

#define EVENT_KEEP_MS_DEFAULT (7ull * 24u * 3600u * 1000u)
#define EVENTS_MAX_DEFAULT    1000000u

/* Where an event stands in its shard: the dot of its entry, and which of the entry's it is. Dots
 * rise along the log and are never given twice, so places are not, either. */
struct event_place {
    uint64_t epoch, counter;
    uint32_t place;
};

struct event_log {
    uint64_t count;             /* Rows of TABLE_EVENT; counted as they are written (audit_row). */
    uint64_t oldest_ms;         /* No event that is kept is older; 0: none is kept. */
    struct event_place trimmed; /* All up to here are gone; zeros: none is. */
    uint64_t trimmed_count;     /* How many are, since apply version 9. */
    uint64_t keep_ms;           /* What the retention that is defined says, or the default. */
    uint64_t events_max;
    uint64_t written; /* Since the shard was loaded: for those who wait for more. In no row. */
    uint64_t removed; /* By retention, likewise. */
    /* Definitions came before there were events: which of them is the retention is still to be
     * looked for (TrimEvents). */
    bool unlearned;
};

/* Below 0, 0, above 0. */
int event_place_compare(const struct event_place *a, const struct event_place *b);
void event_log_init(struct event_log *log);
/* Whether it says more than that there were never events. */
bool event_log_is_used(const struct event_log *log);
/* Without trimmed_count, which programs of before apply version 9 cannot read. */
void event_log_encode(const struct event_log *log, struct buf *out);
/* Malformed bytes make the reader bad. */
void event_log_read(struct reader *reader, struct event_log *log);

#endif
