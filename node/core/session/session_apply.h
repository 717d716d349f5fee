/*
 * session_apply: what happens to a session while an entry is applied: it is granted, held, freed,
 * claimed; claims are decided. Keeps the timer row and the shard's count of sessions in step.
 * DESIGN section 5.
 */
#ifndef NODE_CORE_SESSION_SESSION_APPLY_H
#define NODE_CORE_SESSION_SESSION_APPLY_H

#include "holdfast/v1/session.pb-c.h"
#include "node/core/handler/handler.h"

#define SESSION_RETRY_MS 1000u

/* Mints the next fence for `incarnation`; fills token and fence of `response`. A claim stays. */
void session_grant(struct apply_context *context, struct incarnation incarnation,
                   Holdfast__V1__StartSessionResponse *response);
/* The event that a server got the session, or that it ended; `session` as it stood then. */
void session_tell(struct apply_context *context, const struct session *session, bool started);
/* GRANTED becomes HELD. */
void session_hold(struct apply_context *context);
/* The holder is gone: the session goes to the claimant, if a live one stands, or becomes free. */
void session_release(struct apply_context *context);
/* A transaction holds the player: SessionDue looks again at `due_ms`. */
void session_defer(struct apply_context *context, uint64_t due_ms);
/* At the deadline: the claimant takes the session. False: its server has expired, so the claim
 * is refused and the session stays as it is. */
bool claim_grant(struct apply_context *context);
void claim_set(struct apply_context *context, const struct claim *claim);
/* Forgets the claim without deciding its operation: the caller does. */
void claim_clear(struct apply_context *context);
/* The claim's operation is refused and the claim forgotten. */
void claim_refuse(struct apply_context *context, const struct refusal *refusal);

/* SESSION_LOCKED by `owner`. Returns ERR_CONFLICT. */
err refuse_locked(struct apply_context *context, struct incarnation owner);
const char *incarnation_text(struct arena *arena, struct incarnation incarnation);

#endif
