/*
 * clock: dots, and which of them a replica of a mergeable shard has taken in.
 *
 * An actor is one life of one process, or a part of one: an era of 16 bits, then 48 random bits. A
 * dot is the n-th write of an actor; counters run from 1 without gaps. A clock holds for each actor
 * a base, below which all dots are in, and a bitmap above it (Goncalves, Almeida, Baquero, Fonte:
 * Concise Server-Wide Causality Management, 2015). A clock HOLDS a dot that it names, and COVERS
 * also all dots of a closed actor, the void ones included.
 *
 * Closed actors do not stay: once all members write under actors of a later era and all actors of
 * lower eras are closed everywhere, the clock forgets those and keeps the number of the era.
 * Without an order among actors nothing could be forgotten: a message or a caller's context that
 * was long on its way could name any of them.
 */
#ifndef NODE_CORE_MERGEABLE_CLOCK_H
#define NODE_CORE_MERGEABLE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"

/* Actors that one clock names, closed ones included: process starts of a shard's members. */
#define MCLOCK_ACTORS_MAX 1024u
/* Bits above the bases: as many dots as may be missing below a dot that is there. */
#define MCLOCK_BITS_MAX (1u << 20)
/* Counters stay so far below 2^64 that sums cannot wrap. */
#define MCLOCK_COUNTER_MAX (UINT64_MAX / 4)

#define MERGE_ERA_SHIFT 48u
#define MERGE_ERA_MAX   UINT16_MAX

struct merge_dot {
    uint64_t actor;   /* Not 0. */
    uint64_t counter; /* From 1. */
};

struct mclock_actor {
    uint64_t actor;
    uint64_t member; /* The replica whose process it was; 0: not known here. */
    uint64_t base;   /* All dots up to it are in. */
    bool closed;     /* It writes no more, and all members agreed on its dots: the rest is void. */
    uint32_t words;
    uint64_t *bits; /* Bit i: the dot base + 1 + i. Bit 0 is never set, the last word never 0. */
};

/* A zeroed clock is a valid empty one. */
struct mclock {
    uint32_t count, capacity;
    struct mclock_actor *actors; /* Ascending; none of a lower era than this: */
    uint16_t era;                /* Actors of lower eras are all closed, and forgotten. */
};

uint16_t merge_actor_era(uint64_t actor);
/* The actor of that era that comes of the random bits that were drawn for a process. Not 0. */
uint64_t merge_actor_make(uint16_t era, uint64_t random);

bool merge_dot_equal(struct merge_dot a, struct merge_dot b);
/* By actor, then counter. */
int merge_dot_compare(struct merge_dot a, struct merge_dot b);

void mclock_deinit(struct mclock *clock);
void mclock_copy(struct mclock *to, const struct mclock *from);
/* NULL: the clock does not name the actor. */
const struct mclock_actor *mclock_find(const struct mclock *clock, uint64_t actor);
bool mclock_holds(const struct mclock *clock, struct merge_dot dot);
bool mclock_covers(const struct mclock *clock, struct merge_dot dot);
/* The counter up to which every dot of the actor is covered: what a record's context may be
 * stripped of and filled with. UINT64_MAX for a closed actor. Never what only the bitmap has: the
 * dot in the gap may be one of the same record. */
uint64_t mclock_floor(const struct mclock *clock, uint64_t actor);
/* The highest dot that it holds of the actor; 0: none. */
uint64_t mclock_top(const struct mclock_actor *actor);

/* Takes a dot in. ERR_FULL: over a limit, nothing is changed; the dot comes again by anti-entropy,
 * behind those that are missing below it. A closed actor's dot is taken for in already. */
NODISCARD err mclock_add(struct mclock *clock, struct merge_dot dot);
/* Says whose process the actor was; makes an entry where there is none. ERR_FULL: over the limit.
 */
NODISCARD err mclock_name(struct mclock *clock, uint64_t actor, uint64_t member);
/* The actor writes no more and its missing dots are void. The clock names it, or has forgotten it.
 */
void mclock_close(struct mclock *clock, uint64_t actor);
/* The latest era of which it names an actor, or its own. */
uint16_t mclock_era_latest(const struct mclock *clock);
/* Every actor of a lower era than `era` is closed: then it may forget them. */
bool mclock_may_forget(const struct mclock *clock, uint16_t era);
/* Forgets the actors of lower eras. A lower era than its own changes nothing. */
void mclock_forget(struct mclock *clock, uint16_t era);

enum mclock_closings {
    MCLOCK_CLOSE_AGREED, /* Takes a closing over only if all that `clock` holds of the actor is in
                            `other`. */
    MCLOCK_CLOSE_ALL     /* Takes all over: every record of the other side was merged. */
};
/* Takes in all that `other` holds: only once the records of its dots are stored. ERR_FULL: over the
 * limit of actors, and nothing is changed. */
NODISCARD err mclock_join(struct mclock *clock, const struct mclock *other,
                          enum mclock_closings closings);
/* True if `clock` covers each dot that `other` holds. */
bool mclock_includes(const struct mclock *clock, const struct mclock *other);
/* How many dots `other` holds that `clock` does not cover. */
uint64_t mclock_lacks(const struct mclock *clock, const struct mclock *other);
/* How many dots it holds of the actor above its base. */
uint64_t mclock_above(const struct mclock_actor *actor);
/* True if `other` closed an actor of which `clock` holds a dot that `other` does not: then all
 * records have to be compared before the closing can be taken over. */
bool mclock_exceeds_closed(const struct mclock *clock, const struct mclock *other);
/* True if `other` closed an actor that is open in `clock`. */
bool mclock_lacks_closing(const struct mclock *clock, const struct mclock *other);
/* True if both hold the same dots of this actor. */
bool mclock_agrees(const struct mclock *a, const struct mclock *b, uint64_t actor);

/* compact era, compact count; per actor u64 actor, u64 member, u8 closed, compact base, compact
 * words, u64 each. */
void mclock_encode(const struct mclock *clock, struct buf *out);
/* ERR_CORRUPT: malformed or over a limit; *ret_clock untouched. Free with mclock_deinit. */
NODISCARD err mclock_decode(struct reader *reader, struct mclock *ret_clock);

#endif
