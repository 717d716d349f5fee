/* delivery: calls to shards, and what every shard must log. */
#ifndef COORDINATOR_CORE_DELIVERY_H
#define COORDINATOR_CORE_DELIVERY_H

#include "coordinator/core/coord_event.h"
#include "coordinator/core/coord_out.h"
#include "coordinator/core/coord_state.h"
#include "runtime/cluster/incarnation.h"

struct open_call {
    uint64_t call; /* 0: free. */
    uint32_t shard;
    uint16_t method;
    struct incarnation incarnation; /* None: the call is about the policy. */
    int64_t policy_revision;
    uint64_t policy_version;
    uint64_t cut;     /* TakeCut: which. AuditSearch and ContainPlayer: which search. */
    uint32_t suspect; /* ContainPlayer: whom. */
    uint64_t node;    /* GetNodeStatus: whom. */
};

void delivery_run(struct coord *coord, struct coord_out *out);
/* An answer to an open call, which is over by it: *ret_call is what it was about. False: it is of
 * an earlier term. */
bool delivery_take(struct coord *coord, const struct coord_event *event,
                   struct open_call *ret_call);
/* An answer about a game server. */
void delivery_done(struct coord *coord, const struct open_call *call, bool ok);
/* An answer about the policy. */
void delivery_policy_done(struct coord *coord, const struct open_call *call,
                          const struct coord_event *event);
void delivery_drop(struct coord *coord);
/* Whether a call of that kind may go to the shard's owner now. */
bool shard_takes_calls(struct coord *coord, const struct shard *shard, enum call_kind kind);
/* Adds the call action; the caller fills body and method, of both. NULL: calls_max are open. */
struct coord_call *delivery_call(struct coord *coord, uint32_t shard, struct coord_out *out,
                                 struct open_call **ret_open);
/* Asks the owner (MemberState) unless it was asked just now; change_told takes the answer. */
void delivery_ask_state(struct coord *coord, uint32_t number, struct coord_out *out);

#endif
