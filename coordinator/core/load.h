/* load: and every node has as much to do. */
#ifndef COORDINATOR_CORE_LOAD_H
#define COORDINATOR_CORE_LOAD_H

#include "coordinator/core/coord_out.h"
#include "coordinator/core/coord_state.h"
#include "holdfast/internal/v1/node.pb-c.h"

void load_ask(struct coord *coord, struct coord_out *out);
void load_told(struct coord *coord, struct shard *shard,
               const Holdfast__Internal__V1__MemberStateResponse *told);
/* One exchange, if any is worth it. `owners`: who may be handed shards. */
void load_exchange(struct coord *coord, const uint64_t *owners, uint32_t owner_count);

#endif
