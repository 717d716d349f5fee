/*
 * renew: the heartbeat of a game server, RenewSessions, as one RenewTokens per shard, and the
 * shards' answers as one RenewSessionsResponse (DESIGN section 5). Pure.
 */
#ifndef ROUTER_CORE_RENEW_H
#define ROUTER_CORE_RENEW_H

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/session.pb-c.h"
#include "idl/limit.h"
#include "router/core/session_guard.h"
#include "runtime/base/arena.h"
#include "runtime/cluster/incarnation.h"

#define RENEW_SESSIONS_MAX LIMIT_SESSIONS_RENEWED

/* The tokens of one shard. */
struct renew_group {
    uint32_t shard;
    Holdfast__Internal__V1__RenewTokensRequest request; /* Positions are places in the call. */
};

struct renew_plan {
    struct incarnation incarnation;
    const Holdfast__V1__RenewSessionsRequest *request;
    struct renew_group *groups; /* By rising shard. */
    uint32_t group_count;
    uint8_t *verdicts;      /* enum renew_verdict, by place. */
    uint32_t *remaining_ms; /* By place; for RENEW_RELEASE. */
};

enum renew_verdict { RENEW_UNKNOWN, RENEW_CURRENT, RENEW_LOST, RENEW_RELEASE };

struct renew_call {
    const Holdfast__V1__RenewSessionsRequest *request;
    uint32_t shard_count;
    struct session_guard *guard; /* It knows a secret (CHECK). */
};

/*
 * Groups the tokens; everything lives in `arena`, and the plan borrows the request. A token that
 * is malformed, not genuine or of another incarnation is RENEW_LOST at once, since no shard could
 * confirm it.
 *
 * ERR_INVALID: the incarnation is malformed, or there are too many sessions; *ret_detail says so.
 */
NODISCARD err renew_split(const struct renew_call *call, struct arena *arena,
                          struct renew_plan *ret_plan, Holdfast__V1__ErrorDetail *ret_detail);

/* Takes the answer of one group: every token of it not named is current. NULL: the shard could
 * not be asked; its tokens stay RENEW_UNKNOWN. */
void renew_take(struct renew_plan *plan, uint32_t group,
                const Holdfast__Internal__V1__RenewTokensResponse *answer);

/* The answer to the game server, in `arena`; it borrows the request's texts. */
Holdfast__V1__RenewSessionsResponse *renew_join(const struct renew_plan *plan, struct arena *arena);

#endif
