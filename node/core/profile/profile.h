/* profile: a player as reads tell it. DESIGN section 3. */
#ifndef NODE_CORE_PROFILE_PROFILE_H
#define NODE_CORE_PROFILE_PROFILE_H

#include "holdfast/v1/profile.pb-c.h"
#include "node/core/handler/player_row.h"

#define SECTION_DAMAGE  "a section of the player cannot be read"
#define SECTIONS_DAMAGE "the index of the player's sections cannot be read"

/* `names`: which sections; none means all. Names the player does not have are left out.
 * ERR_NEED: every missing section is noted. ERR_CONFLICT: QUARANTINED, a row cannot be read. */
NODISCARD err profile_read(struct read_context *context, struct player *player, size_t name_count,
                           char *const *names, Holdfast__V1__Profile **ret_profile);

/* Balances as a repeated field, sorted by currency. */
Holdfast__V1__Balance **balances_read(struct arena *arena, const struct player *player);
/* The dot that an answer includes. */
Holdfast__V1__Dot *dot_message(struct arena *arena, struct dot dot);
/* 1 to 64 names of sections. ERR_INVALID with context->refusal. */
NODISCARD err section_names_check(struct arena *arena, struct refusal *refusal, size_t count,
                                  char *const *names);

#endif
