/*
 * rebuild: counts and totals computed again in every eighth run, some rows an entry, while edges
 * change, owners fail and steps come twice or late. What is computed has to be what is kept.
 */
#ifndef TESTS_SIM_FAVORITES_REBUILD_H
#define TESTS_SIM_FAVORITES_REBUILD_H

#include "tests/sim/model/model.h"

/* Each tick of a node: of the shards that it serves. */
void rebuild_tick(struct sim *sim, struct sim_node *node);
/* A RebuildCounts is applied. */
void rebuild_logged(struct change *c);
/* When a run is over and everything was found right: a count is planted wrong, is found by
 * comparing (CheckCounts), and mended. */
void rebuild_damage_check(struct sim *sim, bool (*run_until)(struct sim *sim, uint64_t until_ms));

#endif
