/* change: who holds which shard. */
#ifndef COORDINATOR_CORE_CHANGE_H
#define COORDINATOR_CORE_CHANGE_H

#include "coordinator/core/coord_event.h"
#include "coordinator/core/coord_out.h"
#include "coordinator/core/coord_state.h"
#include "coordinator/core/delivery.h"

void change_run(struct coord *coord, struct coord_out *out);
void change_told(struct coord *coord, const struct open_call *call,
                 const struct coord_event *event);
void change_drop(struct coord *coord);

#endif
