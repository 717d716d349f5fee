/*
 * outcome_share: how much of a shard's room for outcomes the calls of one player may fill
 * (docs/player-tokens.md). Anyone may get a player's token, and what such a token may call leaves
 * an outcome each time, also where it changes nothing or is refused: outcomes of `key:` ids for a
 * day, and there is room for `operations_max` of them. So a player's calls of those methods
 * (METHOD_SHARES_OUTCOMES), by a token or by a server, leave at most so many of each kind while
 * those are kept; the next call is refused as THROTTLED, which leaves nothing.
 *
 * A row of TABLE_RATE, whose subject is OUTCOME_SHARE_SUBJECT, counts what was left in segments of
 * time, by the log's time, so all replicas count alike. A segment is forgotten once no outcome of
 * it is kept any more: outcomes leave the count as they leave the shard, and never before.
 */
#ifndef NODE_CORE_APPLY_OUTCOME_SHARE_H
#define NODE_CORE_APPLY_OUTCOME_SHARE_H

#include "node/core/definition/player_rate.h"

#define SHARE_APPLY_VERSION 10u
/* Of the shard's `operations_max`, ... */
#define OUTCOME_SHARE_PART 200u
/* ... and no less. */
#define OUTCOME_SHARE_MIN 50u

/* Of one operation. */
struct outcome_share {
    bool counts; /* Its outcome takes from the share. */
    struct rate_row row;
};

/* Whether such an operation takes from a share. */
bool outcome_share_concerns(const struct op *op);
/* Its row, which the operation will touch. */
void outcome_share_footprint(const struct op *op, struct need *keys);
/*
 * Before the operation is carried out. `is_new`: nothing is stored under its id, so an outcome will
 * take room. ERR_NEED; ERR_CONFLICT: refused, which is not stored: THROTTLED, until the first
 * segment is forgotten, or the row cannot be read.
 */
NODISCARD err outcome_share_admit(struct apply_context *context, bool is_new,
                                  struct outcome_share *ret_share);
/* With its outcome, in the open transaction; nothing where it does not count. */
void outcome_share_take(struct apply_context *context, struct outcome_share *share);
/* So many outcomes of each kind. */
uint64_t outcome_share_max(const struct policy *policy);

#endif
