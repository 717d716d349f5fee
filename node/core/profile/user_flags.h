/*
 * user_flags: the roles and flags of a player, as UserService keeps them: in the section
 * USER_FLAGS_SECTION, which callers read and no edit of theirs may name. docs/users.md.
 */
#ifndef NODE_CORE_PROFILE_USER_FLAGS_H
#define NODE_CORE_PROFILE_USER_FLAGS_H

#include "holdfast/v1/user.pb-c.h"
#include "node/core/handler/handler.h"
#include "node/core/profile/section_edit.h"

#define USER_FLAGS_APPLY_VERSION 10u
#define USER_FLAG_NAME_BYTES_MAX 64u

/* Before the log: names, counts, what is named twice; UNAVAILABLE before that apply version.
 * ERR_INVALID. */
NODISCARD err user_flags_check(struct check_context *context,
                               const Holdfast__V1__SetUserFlagsRequest *request);
void user_flags_footprint(const struct op *op, struct need *keys);
/* Flags that are over go, too. ERR_NEED; ERR_CONFLICT: refused. */
NODISCARD err user_flags_change(struct apply_context *context,
                                const Holdfast__V1__SetUserFlagsRequest *request,
                                Holdfast__V1__SetUserFlagsResponse *response);
/* ERR_NEED; ERR_CONFLICT: QUARANTINED, they cannot be read. */
NODISCARD err user_flags_read(struct read_context *context, struct player *player,
                              Holdfast__V1__GetUserFlagsResponse *response);

#endif
