/*
 * timers: what an owner looks at to see what is due (docs/sessions.md, docs/ledger.md). Rows of
 * TABLE_TIMER are always in memory, so nothing here is ever missing.
 */
#ifndef NODE_CORE_SESSION_TIMERS_H
#define NODE_CORE_SESSION_TIMERS_H

#include "node/core/handler/handler.h"
#include "node/core/rows/rows.h"

static inline bool timer_is_of_erasure(const struct timer_row *timer)
{
    return timer->reservation_seq >= ERASURE_TIMER_SEQ;
}

/* How far an owner has looked behind the first timers, where many of erasures, or that cannot be
 * read, stand before others. Zero at first. */
struct timers_look {
    struct row_key after;
};

/* The earliest timer; but among those that are due at `unix_ms`, erasures come last: each has many
 * steps. Each call looks at the first 1024, and if those hide others, at 1024 further on: one by
 * one all come. False: there is none that can be read. One that cannot be read is noted in
 * `damage`, and passed over. */
bool timers_first(struct state *state, struct timers_look *looked, uint64_t unix_ms,
                  struct damage *damage, struct timer_row *ret_timer);

/* From it on timers_forget looks at all that are due; before, at the first 256. */
#define FORGET_ALL_APPLY_VERSION 10u

/*
 * Deletes timers of an entity that are due although nothing can be done about them: else the owner
 * would try for ever. `like`: only those of the same reservation, or of the same fence; NULL: all,
 * since the entity's rows cannot be read, and its release sets them again. In the open transaction.
 * Returns how many there were.
 */
uint32_t timers_forget(struct apply_context *context, struct slice entity,
                       const struct timer_row *like);

/* Deletes all timers of an entity, due or not, those that cannot be read with them. */
void timers_drop(struct apply_context *context, struct slice entity);
/* Sets the timers of context->player's session and of its reservations. ERR_NEED. */
NODISCARD err timers_renew(struct apply_context *context);

#endif
