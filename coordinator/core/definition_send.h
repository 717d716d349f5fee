/* definition_send: definitions on their way to the shards, and how far each shard is. */
#ifndef COORDINATOR_CORE_DEFINITION_SEND_H
#define COORDINATOR_CORE_DEFINITION_SEND_H

#include "coordinator/core/coord_event.h"
#include "coordinator/core/coord_out.h"
#include "coordinator/core/delivery.h"

void definitions_run(struct coord *coord, struct coord_out *out);
/* An answer to Define or GetDefined. */
void definitions_told(struct coord *coord, const struct open_call *call,
                      const struct coord_event *event);
/* How many shards have not logged all up to that revision. */
uint32_t definition_left(const struct coord *coord, int64_t revision);
/* Lets go of what is on its way. */
void definitions_drop(struct coord *coord);

#endif
