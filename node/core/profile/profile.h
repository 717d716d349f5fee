/* profile: a player as reads tell it. DESIGN section 3. */
#ifndef NODE_CORE_PROFILE_PROFILE_H
#define NODE_CORE_PROFILE_PROFILE_H

#include "holdfast/v1/profile.pb-c.h"
#include "node/core/goods/balance_list.h"
#include "node/core/handler/player_row.h"
#include "node/core/profile/include.h"

#define SECTION_DAMAGE  "a section of the player cannot be read"
#define SECTIONS_DAMAGE "the index of the player's sections cannot be read"

/* As far as `include` asks. Sections the player does not have are left out. It fits an answer
 * (runtime/link/frame.h): a player's sections are bounded, and beside them the pages are.
 * ERR_NEED: every missing row is noted. ERR_CONFLICT: QUARANTINED, a row cannot be read. */
NODISCARD err profile_read(struct read_context *context, struct player *player,
                           const struct include *include, Holdfast__V1__Profile **ret_profile);

/* The player's balances, sorted by currency; `version` as in balance_list_init. */
struct balance_list balances_read(struct arena *arena, const struct player *player,
                                  uint32_t version);
/* The dot that an answer includes. */
Holdfast__V1__Dot *dot_message(struct arena *arena, struct dot dot);

#endif
