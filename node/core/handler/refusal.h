/*
 * refusal: shorthands for the refusals that name a field, what was expected and what was given.
 * Codes short enough to read. See refuse() in handler.h for the rest.
 */
#ifndef NODE_CORE_HANDLER_REFUSAL_H
#define NODE_CORE_HANDLER_REFUSAL_H

#include "idl/error_code.h"
#include "node/core/handler/handler.h"

/* INVALID_ARGUMENT; texts are static or in the arena. Returns ERR_INVALID. */
err refuse_invalid(struct arena *arena, struct refusal *refusal, const char *field,
                   const char *limit, const char *value);
err refuse_number(struct arena *arena, struct refusal *refusal, const char *field,
                  const char *limit, int64_t value);
struct version_pair {
    uint64_t current, expected;
};
/* VERSION_CONFLICT: `what` stands in the message. Returns ERR_CONFLICT. */
err refuse_version(struct apply_context *context, const char *field, const char *what,
                   const struct version_pair *versions);
/* QUARANTINED, not stored as the operation's outcome, if the player is held back: ERR_CONFLICT. */
NODISCARD err quarantine_check(struct arena *arena, struct refusal *refusal,
                               const struct meta *meta, struct slice player);
/*
 * The facts of the refusal that context->refusal holds: INSUFFICIENT_FUNDS and CAPACITY_FULL.
 * Stored with it from apply version 3 on, and not before. What the other codes tell is in their
 * `value` (idl/error_tell.h). Texts are static or in the arena.
 */
void refusal_tell_funds(struct apply_context *context, const char *currency, int64_t balance,
                        int64_t needed);
void refusal_tell_capacity(struct apply_context *context, const char *what, int64_t max);
/* Refusal bytes (refusal.proto) in the arena. */
struct slice refusal_pack(const struct refusal *refusal, struct arena *arena);

#endif
