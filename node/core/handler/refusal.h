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
/* The same of a field that has no sign: 2^64 - 1 is told as such, never as -1. */
err refuse_unsigned(struct arena *arena, struct refusal *refusal, const char *field,
                    const char *limit, uint64_t value);
/*
 * The field of a refusal within an entry of a map: `currencies["gold"].amount`, `edits["a"]`. Maps
 * are sorted for the log (canonical_order.h), and a repetition may come in another order, so no
 * place would name the entry that the caller means. Other lists keep their order: `items[2].kind`.
 * `place` stands where the key is empty. `name` empty: the entry itself. In the arena.
 */
const char *entry_field(struct arena *arena, const char *list, size_t place, const char *key,
                        const char *name);
/* The same at apply: by place in entries of before it, which are replayed as they were applied. */
#define ENTRY_KEYS_APPLY_VERSION 5u
const char *entry_field_applied(const struct apply_context *context, const char *list, size_t place,
                                const char *key, const char *name);
/* At apply: text_shorten, which told no letters beyond ASCII in entries of before. */
#define LETTERS_APPLY_VERSION 10u
const char *value_shorten_applied(const struct apply_context *context, struct slice value);
/* At apply: what is refused was put together from the request, which has it under `field`, or had
 * it in another place. Does nothing to a refusal without a field, nor in entries of before. */
void refusal_tell_field(struct apply_context *context, const char *field);
/* At apply: what goods or sections refuse is told of the request's own field, which stands for
 * them: of a reversal, the entry to reverse. Nothing changes in entries of before. */
#define OWN_FIELD_APPLY_VERSION 10u
void refusal_tell_own(struct apply_context *context, const char *field);
/*
 * Before the log: what context->refusal says (`e` is not ERR_OK) rests on what is declared or open
 * now, and apply says it again. It holds unless the request repeats one whose outcome is in memory:
 * then it gets the answer of then. ERR_OK: the check goes on, since apply relies on the rest of
 * it; the first refusal that was deferred stands. In a shard of an earlier apply version: `e`.
 */
#define DEFER_APPLY_VERSION 10u
NODISCARD err refusal_defer(struct check_context *context, err e);
/* INVALID_ARGUMENT: two entries have the key of `field`, as the codec says it of plain JSON. */
err refuse_twin(struct arena *arena, struct refusal *refusal, const char *field);
/* What is refused is a part of `whole`: its field, in the message too, becomes "whole.field". */
void refusal_set_within(struct arena *arena, struct refusal *refusal, const char *whole);
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
