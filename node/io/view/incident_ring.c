#include "node/io/view/incident_ring.h"

#include <string.h>

#include "runtime/base/buf.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"

#define NONE    INCIDENTS_MAX
#define SESSION "session:"

void incident_ring_init(struct incident_ring *ring)
{
    ring->last = 0;
    ring->count = 0;
    ring->oldest = NONE;
    ring->newest = NONE;
    for (uint32_t i = 0; i < INCIDENT_CALLERS_PLACES; i++)
        ring->callers[i] = (struct incident_caller){ NONE, NONE, 0 };
}

static uint32_t place_of(const char *by)
{
    bool session = strncmp(by, SESSION, sizeof SESSION - 1) == 0;

    return (uint32_t)(hash_u64(slice_from_text(session ? SESSION : by)) % INCIDENT_CALLERS_PLACES);
}

/* Frees the oldest slot of the caller that has most. */
static uint32_t make_room(struct incident_ring *ring)
{
    struct incident_caller *most = &ring->callers[0];

    for (uint32_t i = 1; i < INCIDENT_CALLERS_PLACES; i++) {
        if (ring->callers[i].count > most->count)
            most = &ring->callers[i];
    }
    uint32_t at = most->oldest;
    const struct incident_slot *slot = &ring->slots[at];

    CHECK(at != NONE && most->count > 0);
    most->oldest = slot->newer_of_same;
    most->count--;
    if (most->count == 0)
        most->newest = NONE;
    *(slot->older != NONE ? &ring->slots[slot->older].newer : &ring->oldest) = slot->newer;
    *(slot->newer != NONE ? &ring->slots[slot->newer].older : &ring->newest) = slot->older;
    ring->count--;
    return at;
}

void incident_ring_add(struct incident_ring *ring, const struct incident *incident)
{
    uint32_t at = ring->count < INCIDENTS_MAX ? ring->count : make_room(ring);
    struct incident_slot *slot = &ring->slots[at];
    struct incident_caller *caller = &ring->callers[place_of(incident->by)];

    slot->incident = *incident;
    slot->number = ++ring->last;
    slot->older = ring->newest;
    slot->newer = NONE;
    slot->newer_of_same = NONE;
    *(ring->newest != NONE ? &ring->slots[ring->newest].newer : &ring->oldest) = at;
    ring->newest = at;
    *(caller->newest != NONE ? &ring->slots[caller->newest].newer_of_same : &caller->oldest) = at;
    caller->newest = at;
    caller->count++;
    ring->count++;
}

const struct incident_slot *incident_ring_after(const struct incident_ring *ring, uint64_t number)
{
    uint32_t found = NONE;

    for (uint32_t at = ring->newest; at != NONE && ring->slots[at].number > number;
         at = ring->slots[at].older)
        found = at;
    return found != NONE ? &ring->slots[found] : NULL;
}

const struct incident_slot *incident_ring_next(const struct incident_ring *ring,
                                               const struct incident_slot *slot)
{
    return slot->newer != NONE ? &ring->slots[slot->newer] : NULL;
}
