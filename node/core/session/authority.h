/*
 * authority: with what right an operation acts: by a session's token, for the system, or while no
 * server holds the player (docs/grants.md). DESIGN section 5.
 */
#ifndef NODE_CORE_SESSION_AUTHORITY_H
#define NODE_CORE_SESSION_AUTHORITY_H

#include "node/core/handler/handler.h"

/* "session:<incarnation>", "system:<scope>", "unheld": for the ledger. Empty for AUTHORITY_NONE. */
struct slice authority_text(struct arena *arena, const struct authority *authority);
/* "payments", "mail", "moderation", "match", "admin". */
bool authority_scope_is_known(struct slice scope);
/* At apply. A GRANTED session becomes HELD. ERR_CONFLICT: `refusal` says why. */
NODISCARD err authority_apply(struct apply_context *context, const struct handler *handler);
/* PERMISSION_DENIED when the method does not admit the kind. */
NODISCARD err authority_check_kind(struct arena *arena, struct refusal *refusal,
                                   const struct handler *handler, enum authority_kind kind);

#endif
