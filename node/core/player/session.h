/*
 * session: who may write a player's owned state, as it stands in the player's row. Rules only:
 * no rows, no timers. DESIGN section 5.
 *
 *   FREE --StartSession--> GRANTED --write or renewal--> HELD
 *   GRANTED, unused for SESSION_UNUSED_MS --> FREE      (the answer was lost)
 *   GRANTED, HELD --EndSession--> FREE, or GRANTED to the claimant
 *   GRANTED, HELD --claim's deadline--> GRANTED to the claimant
 */
#ifndef NODE_CORE_PLAYER_SESSION_H
#define NODE_CORE_PLAYER_SESSION_H

#include "idl/limit.h"
#include "node/core/codec/op.h"
#include "node/core/player/meta.h"

#define SESSION_UNUSED_MS        15000u
#define SESSION_GRACE_MS_DEFAULT 5000u
#define SESSION_GRACE_MS_MAX     LIMIT_SESSION_GRACE_MS

enum session_state { SESSION_FREE, SESSION_GRANTED, SESSION_HELD };

/* A steal in its grace period. Its operation's stored outcome is PENDING while it stands. */
struct claim {
    struct incarnation incarnation; /* None: no claim. */
    uint64_t deadline_ms;           /* Counted from the first claim against this holder. */
    struct slice op_id;
    uint32_t attempt;
    struct hash128 payload;
};

struct session {
    enum session_state state;
    uint64_t fence; /* Rises with every session of the player. */
    struct incarnation incarnation;
    uint64_t acquired_at_ms;
    uint64_t timer_ms; /* Its row in TABLE_TIMER; 0: none. */
    struct claim claim;
};

/* GRANTED or HELD by a server that has not expired. */
bool session_is_live(const struct session *session, const struct meta *meta);
/* The token names this session, and its server has not expired. */
bool session_is_current(const struct session *session, const struct meta *meta,
                        struct incarnation incarnation, uint64_t fence);
bool session_has_claim(const struct session *session);
/* When SessionDue has something to do; 0: never. */
uint64_t session_due_ms(const struct session *session);
/* Milliseconds until the claim's deadline; 0 when it has passed or there is none. */
uint32_t session_claim_left_ms(const struct session *session, uint64_t now_unix_ms);

void session_encode(const struct session *session, struct buf *out);
/* Slices point into the reader's bytes; sets reader->bad when malformed. */
void session_decode(struct reader *reader, struct session *ret_session);

#endif
