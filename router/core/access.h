/*
 * access: what the scopes of a caller's key allow (DESIGN section 11). Two questions, both answered
 * before anything is sent to a node: does a scope open the method (METHOD_TABLE's column), and does
 * the caller have the scope for every authority that the message names? `system` wants the scope of
 * that name; `session` wants game; `unheld`, which writes players whom no server holds, game or
 * admin. Pure.
 *
 * A caller with a player's token has no scopes: the idl says which methods take one (the option
 * player_field), and each of them is about the token's own player alone.
 */
#ifndef ROUTER_CORE_ACCESS_H
#define ROUTER_CORE_ACCESS_H

#include "holdfast/v1/error.pb-c.h"
#include "idl/method.h"
#include "runtime/base/arena.h"

/* ERR_PERMISSION: *ret_detail names the scopes wanted and those had; texts are in the arena. */
NODISCARD err access_check_method(const struct method_info *method, uint32_t scopes,
                                  struct arena *arena, Holdfast__V1__ErrorDetail *ret_detail);
/* Every authority anywhere in the message, so parts of batches and other participants too.
 * ERR_PERMISSION: as above. ERR_INVALID: a scope that does not exist. */
NODISCARD err access_check_message(const ProtobufCMessage *message, uint32_t scopes,
                                   struct arena *arena, Holdfast__V1__ErrorDetail *ret_detail);

/* Whether the method takes players' tokens at all. ERR_PERMISSION: *ret_detail says so. */
NODISCARD err access_check_player_method(const struct method_info *method, struct arena *arena,
                                         Holdfast__V1__ErrorDetail *ret_detail);
/* The player of a token, and whether a message that names no player got its id. */
struct access_player {
    const char *id; /* Lives as long as the message. */
    bool filled;    /* Told. */
};
/* The same, and whether the message is about that player; one that names none is, from now on. What
 * is public is about none. */
NODISCARD err access_check_player(const struct method_info *method, struct access_player *player,
                                  ProtobufCMessage *message, struct arena *arena,
                                  Holdfast__V1__ErrorDetail *ret_detail);
/* Once its op_id is filled in: a player's own operations are named by UUIDv7s or by `key:`, whose
 * outcomes are kept for a time. ERR_PERMISSION: it is another typed key, which is kept for good. */
NODISCARD err access_check_player_op(const ProtobufCMessage *message, struct arena *arena,
                                     Holdfast__V1__ErrorDetail *ret_detail);

#endif
