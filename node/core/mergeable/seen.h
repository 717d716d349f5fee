/*
 * seen: what a caller's token says that it saw, at this replica.
 */
#ifndef NODE_CORE_MERGEABLE_SEEN_H
#define NODE_CORE_MERGEABLE_SEEN_H

#include "node/core/mergeable/replica.h"

/* Where tokens of this record hold now. */
struct merge_place merge_place_of(const struct merge_replica *replica, const struct merge_key *key);
/* Of no bytes, a token that saw nothing. Errors as of merge_token_open. */
NODISCARD err merge_token_take(const struct merge_replica *replica, const struct merge_key *key,
                               struct slice bytes, struct merge_token *ret_token);
/* All that the token saw was taken in here. The clock alone says so: a write with a token leaves
 * dots in its record's context that have not come, nor has what those replaced. */
bool merge_token_met(const struct merge_replica *replica, const struct merge_token *token);

#endif
