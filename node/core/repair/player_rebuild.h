/*
 * player_rebuild: makes a player's own row again from its other rows, when the row itself cannot be
 * read. Ends the session. docs/runbooks/HoldfastRowsUnreadable.md says what comes back and what
 * does not.
 */
#ifndef NODE_CORE_REPAIR_PLAYER_REBUILD_H
#define NODE_CORE_REPAIR_PLAYER_REBUILD_H

#include "holdfast/v1/admin.pb-c.h"
#include "node/core/handler/handler.h"

/* Entries of the ledger looked at for balances, the newest first. */
#define REBUILD_ENTRIES_MAX 4096u

/* What only a person knows. Borrowed. */
struct rebuild_hints {
    size_t section_count;
    Holdfast__V1__RepairSection *const *sections;
    size_t balance_count;
    Holdfast__V1__CurrencyAmount *const *balances;
};

/*
 * *context->player becomes what the rows say; it counts as readable from here on. ERR_NEED;
 * ERR_CONFLICT, ERR_INVALID: refused, `refusal` names the row or the field.
 */
NODISCARD err player_rebuild(struct apply_context *context, const struct rebuild_hints *hints);

#endif
