/* spread: every node owns as many shards. */
#ifndef COORDINATOR_CORE_SPREAD_H
#define COORDINATOR_CORE_SPREAD_H

#include "coordinator/core/coord_out.h"
#include "coordinator/core/coord_state.h"

void spread_run(struct coord *coord, struct coord_out *out);

#endif
