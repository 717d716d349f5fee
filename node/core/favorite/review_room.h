/*
 * review_room: how many edges may wait for a review (review.h).
 */
#ifndef NODE_CORE_FAVORITE_REVIEW_ROOM_H
#define NODE_CORE_FAVORITE_REVIEW_ROOM_H

#include "node/core/handler/handler.h"

#define REVIEW_PLAYER_MAX 1000u   /* That rules flag, of one player and collection. */
#define REVIEW_SHARD_MAX  100000u /* That wait in one shard. */

/* Whether one more edge may be flagged by a rule, of a player of whom `waiting` are; UINT32_MAX:
 * a moderator flags it, and the player's limit does not matter. ERR_CONFLICT: refused as THROTTLED,
 * which is not stored. */
NODISCARD err review_room(struct apply_context *context, uint32_t waiting);
#define REVIEW_BY_HAND UINT32_MAX

#endif
