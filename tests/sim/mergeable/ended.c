/* Actors that members have closed: clocks forget which dots those had, the oracle must not. */
#include <stdlib.h>

#include "runtime/base/check.h"
#include "tests/sim/mergeable/msim.h"

static const struct ended *ended_find(const struct msim *sim, uint64_t actor)
{
    for (uint32_t i = 0; i < sim->ended_count; i++)
        if (sim->ended[i].actor == actor)
            return &sim->ended[i];
    return NULL;
}

static void note(struct msim *sim, const struct mclock_actor *actor)
{
    struct mclock_actor same = *actor;
    struct mclock one = { .count = 1, .capacity = 1, .actors = &same };

    /* A member that came back with an old image may have more, which its peers' closing made void.
     */
    if (ended_find(sim, actor->actor) != NULL)
        return;
    sim->ended = mem_realloc(sim->ended, (sim->ended_count + 1) * sizeof *sim->ended);
    struct ended *ended = &sim->ended[sim->ended_count++];

    *ended = (struct ended){ .actor = actor->actor };
    mclock_copy(&ended->dots, &one);
}

/* The node knows that the actor is closed: its clock says so, or has forgotten the actor's era. */
static bool knows(const struct node *node, uint64_t actor)
{
    const struct mclock *clock = &node->replica->clock;
    const struct mclock_actor *entry = mclock_find(clock, actor);

    return (entry != NULL && entry->closed) || merge_actor_era(actor) < clock->era;
}

/* What has come onto the node's disk since it was seen there. */
static void note_disk(struct ended *ended, const struct node *node, uint32_t at)
{
    ended->on_disk |= ended->known_at[at] != 0 && ended->known_at[at] <= node->disk.synced;
}

void ended_watch(struct msim *sim)
{
    for (uint32_t i = 0; i < NODES; i++) {
        const struct node *node = &sim->nodes[i];

        for (uint32_t j = 0; node->replica != NULL && j < node->replica->clock.count; j++)
            if (node->replica->clock.actors[j].closed)
                note(sim, &node->replica->clock.actors[j]);
        for (uint32_t j = 0; node->replica != NULL && j < sim->ended_count; j++) {
            struct ended *ended = &sim->ended[j];

            if (ended->known_at[i] == 0 && knows(node, ended->actor))
                ended->known_at[i] = node->disk.first + node->disk.log_count;
            note_disk(ended, node, i);
        }
    }
}

void ended_crashed(struct msim *sim, const struct node *node)
{
    uint32_t kept = 0, at = (uint32_t)(node - sim->nodes);

    for (uint32_t i = 0; i < sim->ended_count; i++) {
        struct ended *ended = &sim->ended[i];
        bool known;

        note_disk(ended, node, at);
        ended->known_at[at] = 0; /* Its next process says again what it knows. */
        known = ended->on_disk;
        for (uint32_t j = 0; j < NODES; j++)
            known |= ended->known_at[j] != 0;
        if (known)
            sim->ended[kept++] = *ended;
        else
            mclock_deinit(&ended->dots);
    }
    sim->ended_count = kept;
}

bool ended_has(const struct msim *sim, struct merge_dot dot, uint16_t era)
{
    const struct ended *ended = ended_find(sim, dot.actor);

    return ended != NULL ? mclock_holds(&ended->dots, dot) : merge_actor_era(dot.actor) >= era;
}

bool ended_holds(const struct msim *sim, const struct mclock *clock, struct merge_dot dot)
{
    if (merge_actor_era(dot.actor) < clock->era)
        return ended_has(sim, dot, clock->era);
    return mclock_holds(clock, dot);
}

void ended_free(struct msim *sim)
{
    for (uint32_t i = 0; i < sim->ended_count; i++)
        mclock_deinit(&sim->ended[i].dots);
    free(sim->ended);
}
