/* audit: whether every item and unit is there once. */
#ifndef COORDINATOR_CORE_AUDIT_H
#define COORDINATOR_CORE_AUDIT_H

#include "coordinator/core/coord_event.h"
#include "coordinator/core/coord_out.h"
#include "coordinator/core/coord_state.h"
#include "coordinator/core/delivery.h"

void audit_run(struct coord *coord, struct coord_out *out);
void audit_done(struct coord *coord, const struct open_call *call, const struct coord_event *event);
void audit_drop(struct coord *coord);
void audit_free(struct coord *coord);

#endif
