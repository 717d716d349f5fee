/* What some runs have and others have not, by the seed alone. Nothing here draws from the run's
 * chance: a seed that has none of it stays as it was. */
#include "tests/sim/servers/workload.h"

#define HURRIES    0x68757272u /* Each die has its own number. */
#define STRAGGLERS 0x73747261u
#define ZONES      0x7a6f6e65u
#define SLOWNESS   0x736c6f77u
#define REVIEWS    0x72657669u
#define RICHES     0x72696368u
#define BACKUPS    0x6261636bu
#define WINDOWS    0x77696e64u
#define RAISES     0x72616973u

static uint32_t die(const struct sim *sim, uint64_t what)
{
    return op_twist(sim->seed, what << 32);
}

void variety_choose(struct sim *sim)
{
    uint32_t hurries = die(sim, HURRIES), stragglers = die(sim, STRAGGLERS);
    uint32_t zones = die(sim, ZONES), slowness = die(sim, SLOWNESS);

    if (hurries % 2 == 0 && !sim_without(sim, WITHOUT_hurries))
        sim->hurry = 10 + hurries / 2 % 150;
    if (stragglers % 3 == 0 && !sim_without(sim, WITHOUT_stragglers))
        sim->straggle = 1 + stragglers / 4 % 12;
    if (zones % 4 > 0)
        sim->zones = 1 + zones / 4 % 3;
    if (slowness % 6 == 0 && !sim_without(sim, WITHOUT_evictions)) {
        sim->evict = 400 + slowness / 8 % 400;
        sim->range_ms_max = 200 + slowness / 4096 % 500;
    }
    sim->reviews = die(sim, REVIEWS) % 5 == 0 ? 24 : 256;
    sim->long_windows = die(sim, WINDOWS) % 3 == 0;
    sim->large_swaps = die(sim, RICHES) % 2 == 0;
    sim->raise_ms = die(sim, RAISES) % 4 == 0 ? 100 + die(sim, RAISES) / 4 % 1500 : 600000;
    sim->backups = die(sim, BACKUPS) % 4 == 0 && !sim_without(sim, WITHOUT_backups);
}
