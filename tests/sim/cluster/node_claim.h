/* node_claim: what a node tells the coordinator of owners. */
#ifndef TESTS_SIM_CLUSTER_NODE_CLAIM_H
#define TESTS_SIM_CLUSTER_NODE_CLAIM_H

#include "tests/sim/sim.h"

/* Of others that are gone, and of its own shards that take another epoch. Once a tick. */
void node_claim(struct sim *sim, struct sim_node *node);
/* Tells its shards whether its disk is full, and the coordinator while it is. */
void node_look_at_space(struct sim *sim, struct sim_node *node);
/* Shards whose log is of an earlier version than all their members have had for long (program.c).
 */
uint32_t program_left(struct sim *sim);

#endif
