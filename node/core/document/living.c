#include "node/core/document/living.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

void living_deinit(struct living *living)
{
    free(living->list);
    *living = (struct living){ 0 };
}

/* The place of the first that is not before it. */
static uint32_t place_of(const struct living *living, struct incarnation incarnation)
{
    uint32_t low = 0, high = living->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (incarnation_compare(living->list[middle].incarnation, incarnation) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct living_server *find(const struct living *living, struct incarnation incarnation)
{
    uint32_t at = place_of(living, incarnation);

    if (at == living->count || incarnation_compare(living->list[at].incarnation, incarnation) != 0)
        return NULL;
    return &living->list[at];
}

static void drop(struct living *living, uint32_t at)
{
    living->dead -= living->list[at].dead;
    living->count--;
    memmove(living->list + at, living->list + at + 1, (living->count - at) * sizeof *living->list);
}

/* Makes room by what matters least: the oldest of the dead, which is dead by its age; else the
 * oldest of all. */
static void drop_one(struct living *living)
{
    uint32_t at = 0;

    while (living->dead > 0 && !living->list[at].dead)
        at++;
    drop(living, at);
}

static struct living_server *make(struct living *living, struct incarnation incarnation)
{
    struct living_server *server = find(living, incarnation);

    if (server != NULL)
        return server;
    if (living->count == LIVING_SERVERS_MAX)
        drop_one(living);
    if (living->count == living->capacity) {
        living->capacity = living->capacity * 2 + 16;
        living->list = mem_realloc(living->list, living->capacity * sizeof *living->list);
    }
    uint32_t at = place_of(living, incarnation);

    memmove(living->list + at + 1, living->list + at, (living->count - at) * sizeof *living->list);
    living->list[at] = (struct living_server){ .incarnation = incarnation };
    living->count++;
    return &living->list[at];
}

static void set_dead(struct living *living, struct living_server *server, bool dead)
{
    living->ended += dead && !server->dead;
    living->dead += dead;
    living->dead -= server->dead;
    server->dead = dead;
    if (living->dead > LIVING_DEAD_MAX)
        drop_one(living);
}

void living_put(struct living *living, struct incarnation incarnation, bool expiring)
{
    living_begin_generation(living, incarnation.generation);
    set_dead(living, make(living, incarnation), expiring);
}

void living_remove(struct living *living, struct incarnation incarnation)
{
    struct living_server *server = find(living, incarnation);

    if (server != NULL)
        set_dead(living, server, true);
}

void living_hear(struct living *living, uint64_t revision, uint64_t now_ms)
{
    if (revision > living->heard)
        living->heard = revision;
    if (living->told != 0 && now_ms < living->told_ms + LIVING_SETTLE_MS)
        return;
    living->ended += living->settled == 0 && living->told != 0; /* Those that were never told. */
    living->settled = living->told;
    living->told = living->heard;
    living->told_ms = now_ms;
}

void living_begin_generation(struct living *living, uint64_t generation)
{
    if (generation <= living->generation)
        return;
    living->generation = generation;
    living->ended++;
}

void living_reset(struct living *living)
{
    struct living kept = { .ended = living->ended, .generation = living->generation };

    living_deinit(living);
    *living = kept;
}

void living_complete(struct living *living)
{
    living->ended += !living->complete; /* Those that died before. */
    living->complete = true;
}

enum living_state living_state_of(const struct living *living, struct incarnation incarnation,
                                  uint64_t now_ms)
{
    const struct living_server *server = find(living, incarnation);
    bool settled = now_ms >= living->told_ms + LIVING_SETTLE_MS;

    if (incarnation.generation < living->generation)
        return LIVING_DEAD;
    if (server != NULL)
        return server->dead ? LIVING_DEAD : LIVING_YES;
    if (!living->complete)
        return LIVING_UNHEARD;
    return incarnation.revision <= (settled ? living->told : living->settled) ? LIVING_DEAD
                                                                              : LIVING_UNHEARD;
}

uint32_t living_count(const struct living *living)
{
    return living->count - living->dead;
}

void living_check(const struct living *living)
{
    uint32_t dead = 0;

    for (uint32_t i = 0; i < living->count; i++) {
        CHECK(i == 0 || incarnation_compare(living->list[i - 1].incarnation,
                                            living->list[i].incarnation) < 0);
        dead += living->list[i].dead;
    }
    CHECK(dead == living->dead && dead <= LIVING_DEAD_MAX && living->count <= LIVING_SERVERS_MAX);
}
