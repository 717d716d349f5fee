/* definition_change: a caller's change, and the callers that wait for what came of theirs. */
#ifndef COORDINATOR_CORE_DEFINITION_CHANGE_H
#define COORDINATOR_CORE_DEFINITION_CHANGE_H

#include "coordinator/core/coord_event.h"
#include "coordinator/core/coord_out.h"
#include "coordinator/core/coord_state.h"

void definition_change(struct coord *coord, const struct coord_event *event, struct coord_out *out);
/* Answers callers whose time has come. After every step. */
void definition_waits_run(struct coord *coord, struct coord_out *out);
bool definition_waits_open(const struct coord *coord);

#endif
