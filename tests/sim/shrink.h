/*
 * shrink: from a seed that fails to a shorter run that fails in the same way: smaller clusters,
 * kinds of faults left out, troubles left out one by one, an end right where it breaks. Every trial
 * is a child process, so that a failed CHECK is a failure like any other.
 */
#ifndef TESTS_SIM_SHRINK_H
#define TESTS_SIM_SHRINK_H

#include "tests/sim/sim.h"

struct trial {
    bool failed;
    char what[SIM_TEXT_BYTES]; /* What was broken, or the CHECK that failed. */
    uint32_t shard;
    uint64_t events;
    uint32_t troubles;
};

/* One run. Deterministic: the same switches give the same trial. */
void shrink_try(uint64_t seed, const struct sim_switches *switches, struct trial *ret_trial);
/* *switches: in, what is left out already; out, as much as can be. *ret_trial: the run that is
 * left. At most `trials_max` runs. */
void shrink_seed(uint64_t seed, uint32_t trials_max, struct sim_switches *switches,
                 struct trial *ret_trial);

#endif
