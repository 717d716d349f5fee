/* What every part of a run uses: its random numbers, its queue, its story, and what broke. */
#include "tests/sim/sim.h"

#include <stdarg.h>
#include <stdio.h>

void sim_say(const struct sim *sim, const char *format, ...)
{
    va_list args;

    if (!sim->verbose)
        return;
    printf("%7llu  ", (unsigned long long)sim->now_ms);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

void sim_fail(struct sim *sim, uint32_t shard, const char *format, ...)
{
    va_list args;

    if (sim->failure[0] != '\0')
        return;
    int used = snprintf(sim->failure, sizeof sim->failure,
                        "at %llu ms, shard %u: ", (unsigned long long)sim->now_ms, shard);
    va_start(args, format);
    vsnprintf(sim->failure + used, sizeof sim->failure - (size_t)used, format, args);
    va_end(args);
    sim->failed_shard = shard;
    sim_say(sim, "BROKEN   %s", sim->failure);
}

uint64_t sim_between(struct sim *sim, uint64_t low, uint64_t high)
{
    return sim_random_between(&sim->random, low, high);
}

bool sim_chance(struct sim *sim, uint32_t per_thousand)
{
    return sim_random_chance(&sim->random, per_thousand);
}

void sim_later(struct sim *sim, uint64_t delay_ms, const struct sim_event *event)
{
    struct sim_event later = *event;

    later.at_ms = sim->now_ms + delay_ms;
    sim_queue_push(&sim->queue, &later);
}

uint64_t sim_unix_ms(const struct sim *sim, const struct sim_node *node)
{
    return SIM_UNIX_MS + sim->now_ms + sim->clock_ms + (uint64_t)node->skew_ms;
}

bool sim_without(const struct sim *sim, enum sim_without kind)
{
    return (sim->switches.without >> kind & 1) != 0;
}
