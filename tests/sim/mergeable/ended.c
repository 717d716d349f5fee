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

void ended_watch(struct msim *sim)
{
    for (uint32_t i = 0; i < NODES; i++) {
        const struct merge_replica *replica = sim->nodes[i].replica;

        for (uint32_t j = 0; replica != NULL && j < replica->clock.count; j++)
            if (replica->clock.actors[j].closed)
                note(sim, &replica->clock.actors[j]);
    }
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
