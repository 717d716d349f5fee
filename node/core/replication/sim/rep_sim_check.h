/* rep_sim_check: what DESIGN section 1 promises, checked at every commit and at every read. */
#ifndef NODE_CORE_REPLICATION_SIM_REP_SIM_CHECK_H
#define NODE_CORE_REPLICATION_SIM_REP_SIM_CHECK_H

#include "node/core/replication/sim/rep_sim_state.h"

void rep_sim_check_commit(struct rep_sim *sim, struct sim_node *node);
void rep_sim_check_reads(struct rep_sim *sim, struct sim_node *node, const struct rep_out *out);
/* All members of the newest record hold one log, applied alike. */
bool rep_sim_converged(const struct rep_sim *sim);

#endif
