/*
 * authority: with what right an operation acts: by a session's token, for the system, or while no
 * server holds the player (docs/grants.md). DESIGN section 5.
 */
#ifndef NODE_CORE_SESSION_AUTHORITY_H
#define NODE_CORE_SESSION_AUTHORITY_H

#include "node/core/handler/handler.h"

#define AUTHORITY_TOKEN_BYTES_MAX 64u
#define AUTHORITY_TOLD_BYTES_MAX  128u

/* What an error says of a text that is no authority: what is expected, and what was given, without
 * anything that may be a token. */
struct authority_fault {
    const char *limit, *value;
};
/* `session:<token>`, `system:<scope>` or `unheld`, from a caller. The scope points into `text`.
 * ERR_INVALID: another text; *ret_fault says why, in the arena; *ret_authority is untouched. */
NODISCARD err authority_parse(struct arena *arena, struct slice text,
                              struct authority *ret_authority, struct authority_fault *ret_fault);
/* From the log alone: the same, or what the field held before it was a string, protobuf of a
 * message with `session {token}` (1), `system {scope}` (2) or `unheld {}` (3). ERR_CORRUPT:
 * neither. */
NODISCARD err authority_parse_logged(struct slice text, struct authority *ret_authority);

/* "session:<incarnation>", "system:<scope>/<caller>" or, where that is not known, "system:<scope>",
 * "unheld": for the ledger. At most AUTHORITY_TOLD_BYTES_MAX; empty for AUTHORITY_NONE. */
struct slice authority_text(struct arena *arena, const struct authority *authority);
/* "payments", "mail", "moderation", "match", "admin". */
bool authority_scope_is_known(struct slice scope);
/* At apply. A GRANTED session becomes HELD. ERR_CONFLICT: `refusal` says why. */
NODISCARD err authority_apply(struct apply_context *context, const struct handler *handler);
/* PERMISSION_DENIED when the method does not admit the kind, in a shard of this apply version. */
NODISCARD err authority_check_kind(struct arena *arena, struct refusal *refusal,
                                   const struct handler *handler, enum authority_kind kind,
                                   uint32_t version);

#endif
