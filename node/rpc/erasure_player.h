/* erasure_player: what ErasePlayer and RestorePlayer share. */
#ifndef NODE_RPC_ERASURE_PLAYER_H
#define NODE_RPC_ERASURE_PLAYER_H

#include "node/core/erasure/erasure.h"
#include "node/core/handler/refusal.h"

/* PERMISSION_DENIED: the operation's authority is not `system:admin`. */
NODISCARD err erasure_authority(struct apply_context *context);
/* The row of the player's erasure. */
void erasure_footprint(const struct op *op, const ProtobufCMessage *message, struct need *keys);

#endif
