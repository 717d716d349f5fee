/*
 * causal: the context of one record: for each actor the counter up to which this record has taken
 * in all dots that are its own. A dot of another record below that counter does not matter. Since
 * replicas send whole records, never parts, what a record has taken in has no gaps among its own
 * dots, and one number an actor is enough.
 */
#ifndef NODE_CORE_MERGEABLE_CAUSAL_H
#define NODE_CORE_MERGEABLE_CAUSAL_H

#include "node/core/mergeable/clock.h"

struct causal_entry {
    uint64_t actor;
    uint64_t upto; /* UINT64_MAX: all, since the actor is closed. */
};

/* A zeroed one is valid and empty. */
struct causal {
    uint32_t count, capacity;
    struct causal_entry *entries; /* Ascending actors; none of a lower era than this: */
    uint16_t era;                 /* Of actors of lower eras it has all. */
};

void causal_deinit(struct causal *causal);
void causal_copy(struct causal *to, const struct causal *from);
bool causal_covers(const struct causal *causal, struct merge_dot dot);
/* It says nothing. */
bool causal_is_empty(const struct causal *causal);
bool causal_equal(const struct causal *a, const struct causal *b);
/* At least `upto` from now on. */
void causal_raise(struct causal *causal, uint64_t actor, uint64_t upto);
void causal_join(struct causal *causal, const struct causal *other);
/* How many actors the two name together. */
uint32_t causal_union(const struct causal *a, const struct causal *b);
/* Leaves out what the clock's floors say already. The clock is that of the same replica and moment.
 */
void causal_strip(struct causal *causal, const struct mclock *clock);
/* Adds the clock's floors: all that a replica with this clock has taken in, this record has. */
void causal_fill(struct causal *causal, const struct mclock *clock);

/* compact era, compact count; per actor u64 actor, compact upto. */
void causal_encode(const struct causal *causal, struct buf *out);
/* ERR_CORRUPT: malformed or over MCLOCK_ACTORS_MAX entries; *ret_causal untouched. */
NODISCARD err causal_decode(struct reader *reader, struct causal *ret_causal);

#endif
