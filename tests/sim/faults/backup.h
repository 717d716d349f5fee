/* backup: shards that are armed for a backup, and are told to take cuts. */
#ifndef TESTS_SIM_FAULTS_BACKUP_H
#define TESTS_SIM_FAULTS_BACKUP_H

#include "tests/sim/sim.h"

#define SIM_NO_CALLER 0u /* Wants the answer to a call. */

/* The node that serves the shard; NULL: none does. */
struct sim_node *owner_find(struct sim *sim, uint32_t shard);
/* After each step of a shard: arms it, or freezes it at its cut; now and then a backup begins. */
void backup_follow(struct sim *sim, struct sim_node *node, uint32_t shard);

#endif
