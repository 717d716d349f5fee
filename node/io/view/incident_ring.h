/*
 * incident_ring: the newest incidents, in order, in memory of fixed size. When it is full, the
 * oldest of the caller who has most in it makes room: one key that repeats its calls overwrites its
 * own, and not what others need. Keys of systems count apart; all sessions count together, since
 * one key may have any number of them; so does what no caller asked for. Pure.
 */
#ifndef NODE_IO_VIEW_INCIDENT_RING_H
#define NODE_IO_VIEW_INCIDENT_RING_H

#include <stdbool.h>

#include "node/core/shard/incident.h"

#define INCIDENTS_MAX           4096u
#define INCIDENT_CALLERS_PLACES 256u /* Two callers of one place share. */

struct incident_slot {
    struct incident incident;
    uint64_t number;
    uint32_t older, newer;  /* Slots, in the order of numbers; INCIDENTS_MAX: none. */
    uint32_t newer_of_same; /* Of the same caller's place. */
};

struct incident_caller {
    uint32_t oldest, newest, count;
};

struct incident_ring {
    uint64_t last; /* Number of the newest; the first is 1. */
    uint32_t count;
    uint32_t oldest, newest;
    struct incident_caller callers[INCIDENT_CALLERS_PLACES];
    struct incident_slot slots[INCIDENTS_MAX];
};

void incident_ring_init(struct incident_ring *ring);
void incident_ring_add(struct incident_ring *ring, const struct incident *incident);
/* The oldest with a greater number; NULL: there is none. */
const struct incident_slot *incident_ring_after(const struct incident_ring *ring, uint64_t number);
/* The one that follows; NULL: it is the newest. */
const struct incident_slot *incident_ring_next(const struct incident_ring *ring,
                                               const struct incident_slot *slot);

#endif
