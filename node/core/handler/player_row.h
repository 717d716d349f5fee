/*
 * player_row: the one way from a player's row to a struct player, for apply and for reads. A row
 * that cannot be decoded is a result like any other: it stops that player, never a replica.
 */
#ifndef NODE_CORE_HANDLER_PLAYER_ROW_H
#define NODE_CORE_HANDLER_PLAYER_ROW_H

#include "node/core/handler/handler.h"

#define PLAYER_DAMAGE "the player's row cannot be read"

/*
 * The player as stored, in the arena; without a row, as player_init leaves it.
 * ERR_NEED: the row is not in memory, and noted in `need`. ERR_CORRUPT: it cannot be decoded, and
 * *ret_player is a player without a row: the caller never stores that one.
 */
NODISCARD err player_row_load(struct state *state, struct arena *arena, struct slice entity,
                              struct need *need, struct player *ret_player);

/* The same while an entry is applied: ERR_CONFLICT instead of ERR_CORRUPT; the player's damage is
 * noted and the refusal QUARANTINED. */
NODISCARD err player_row_apply(struct apply_context *context, struct slice entity,
                               struct player *ret_player);

/* The same while a read is answered, of the read's own entity. */
NODISCARD err player_row_read(struct read_context *context, struct player *ret_player);

#endif
