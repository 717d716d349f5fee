/* definition_find: what there is, for a caller. */
#ifndef COORDINATOR_CORE_DEFINITION_FIND_H
#define COORDINATOR_CORE_DEFINITION_FIND_H

#include "coordinator/core/coord_event.h"
#include "coordinator/core/coord_out.h"
#include "coordinator/core/coord_state.h"

void definition_search(struct coord *coord, const struct coord_event *event, struct coord_out *out);

#endif
