/* repair: damaged replicas leave and come back. */
#ifndef COORDINATOR_CORE_REPAIR_H
#define COORDINATOR_CORE_REPAIR_H

#include "coordinator/core/coord_out.h"
#include "coordinator/core/coord_state.h"

/* Of a shard's members. */
struct change {
    uint64_t adding, removing; /* 0: none. */
};

/* It lives, and did not find this shard damaged. */
bool replica_is_whole(struct coord *coord, uint32_t number, uint64_t replica_id);
bool replica_is_damaged(struct coord *coord, uint32_t number, uint64_t replica_id);
/* Of members, as far as their nodes live. */
uint32_t repair_damaged_count(const struct coord *coord, uint32_t number);
/* The next step of the repair that the shard's wish is; none while it waits. False: it is over. */
bool repair_follow(struct coord *coord, uint32_t number, struct change *ret_change,
                   struct coord_out *out);
/* Its wish is taken away. */
void repair_over(struct coord *coord, uint32_t number);
/* Wishes the repair of a damaged member, if the others can do without it. */
void repair_look(struct coord *coord, uint32_t number, struct coord_out *out);

#endif
