/* ownership: who owns which shard. */
#ifndef COORDINATOR_CORE_OWNERSHIP_H
#define COORDINATOR_CORE_OWNERSHIP_H

#include "coordinator/core/coord_state.h"
#include "holdfast/internal/v1/node.pb-c.h"

void ownership_run(struct coord *coord);
void ownership_report(struct coord *coord,
                      const Holdfast__Internal__V1__ReportOwnerRequest *report);
/* Its disk; it says so again and again, until there is room. */
bool node_is_full(const struct coord *coord, const struct node *node);
/* Whatever was held against an earlier life is forgotten. */
void ownership_new_life(struct coord *coord, uint64_t replica_id);
/* False: a write is on its way, or was refused and the record that says why has not come yet; or a
 * replica knows a later record. */
bool shard_is_settled(const struct shard *shard);
/* It may also get a new number of a configuration: a majority said that none has that number. */
bool shard_may_change(const struct shard *shard);

/* False: too much is in flight. */
bool ownership_hand_over(struct coord *coord, uint32_t number, uint64_t owner, const char *reason);
/* Not an owner if anybody else can be. */
bool node_is_avoided(const struct coord *coord, const struct node *node);
/* It lives, and its replica of the shard is neither damaged nor quarantined. */
bool replica_may_own(const struct coord *coord, uint32_t number, uint64_t replica_id);
/* Whether that holds of any member. */
bool ownership_is_possible(const struct coord *coord, uint32_t number);
/* Members that live and are quarantined. */
uint32_t ownership_quarantined_count(const struct coord *coord, uint32_t number);
/* Its record did not change lately: what may wait leaves it alone until then. */
bool shard_is_calm(const struct coord *coord, const struct shard *shard);
/* Every shard as it is or, where it has no record, as it would be placed. To be freed. */
struct placement_shard *ownership_proposals_new(struct coord *coord);

#endif
