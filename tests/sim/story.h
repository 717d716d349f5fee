/*
 * story: a run told to people: every line that it says, or only the last ones that concern what was
 * broken.
 */
#ifndef TESTS_SIM_STORY_H
#define TESTS_SIM_STORY_H

#include "tests/sim/shrink.h"

/* One run in this process, every line to stdout; whether it failed. */
bool story_tell(uint64_t seed, const struct sim_switches *switches);
/* Shrinks a seed that fails and prints what is left of it, and how to replay it. */
void story_shrunk(uint64_t seed, const struct sim_switches *switches);

#endif
