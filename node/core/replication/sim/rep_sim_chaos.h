/* rep_sim_chaos: clients, changes of membership and every fault, drawn from one seed. */
#ifndef NODE_CORE_REPLICATION_SIM_REP_SIM_CHAOS_H
#define NODE_CORE_REPLICATION_SIM_REP_SIM_CHAOS_H

#include "node/core/replication/sim/rep_sim.h"

/* rep_sim_init, with as many replicas as the seed says; trouble begins. */
void rep_sim_chaos_begin(struct rep_sim *sim, uint64_t seed);
/* Ends all faults; false (and `failure`) when the shard does not serve and converge. */
bool rep_sim_heal(struct rep_sim *sim);

#endif
