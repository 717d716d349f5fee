/*
 * erasure: erases a player from favourites and counters, step by step (docs/erasure.md). One entry
 * marks the player: from then on nothing of it is told. Entries of the shard's owner take its
 * edges and additions out of counts, a bounded number in each; once the grace period is over they
 * remove the rows. Until then an erasure can be undone. A timer says when the next step is due, so
 * every owner goes on where the one before it was.
 */
#ifndef NODE_CORE_ERASURE_ERASURE_H
#define NODE_CORE_ERASURE_ERASURE_H

#include "node/core/favorite/erasure_row.h"

/* The erasure of a player that is quarantined waits; its undo does not. */
#define ERASURE_WAITS_APPLY_VERSION 10u
/* Before it a purge forgot how many outcomes are kept of the player's calls. */
#define ERASURE_LEAVES_SHARE_APPLY_VERSION 10u
#define ERASURE_GRACE_MS_DEFAULT           604800000ll /* 7 days. */
#define ERASURE_GRACE_MS_MAX               2592000000ll
#define ERASURE_STEP_ROWS_MAX              256u
#define ERASURE_PACE_MS                    10u /* Between two steps. */

/* Before the log: UNAVAILABLE, ERR_INVALID, while the shard applies an earlier version. */
NODISCARD err erasure_check_version(struct check_context *context);

/* Each of these is at apply, about the operation's own player. ERR_NEED; ERR_CONFLICT: refused. */

/* Marks the player. While it is marked and not being purged, only the purge's moment changes; while
 * it is being purged nothing does. */
NODISCARD err erasure_begin(struct apply_context *context, int64_t grace_ms,
                            struct erasure_row *ret_row);
/* NOT_FOUND: the player is not erased, or its purge has begun. */
NODISCARD err erasure_undo(struct apply_context *context, struct erasure_row *ret_row);
/* The next step of the erasure of that number, at most `rows_max` edges and additions. Does nothing
 * where none is due, or while that player is quarantined. */
NODISCARD err erasure_step(struct apply_context *context, uint64_t number, uint32_t rows_max);
/* How far the player was erased cannot be read: it is erased again, with the default grace. */
void erasure_begin_again(struct apply_context *context);
/* Sets the timer of an erasure under way. One that cannot be read has none. ERR_NEED alone. */
NODISCARD err erasure_timer_renew(struct apply_context *context);

/* In the arena. */
Holdfast__V1__Erasure *erasure_told(struct arena *arena, const struct erasure_row *row);

#endif
