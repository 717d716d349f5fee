/* expiry: game servers that are gone. */
#ifndef COORDINATOR_CORE_EXPIRY_H
#define COORDINATOR_CORE_EXPIRY_H

#include "coordinator/core/coord_state.h"

void expiry_run(struct coord *coord);

#endif
