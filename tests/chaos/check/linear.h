/*
 * linear: whether the operations on one player can be put in one order that explains every answer
 * and never puts an operation that began after another was answered before it (linearizability).
 * The search is Wing and Gong's (1993) with Lowe's (2017) memory of what was tried: the set of
 * operations placed, and the player that they lead to. Pure.
 *
 * An operation without an answer may take place at any time after it was called, or never. Gold of
 * a SEND that is refused may be away meanwhile: it was taken, and came back when the other side
 * refused (DESIGN section 7). By the answer it is back; that of a SEND without one may come back at
 * any time.
 */
#ifndef TESTS_CHAOS_CHECK_LINEAR_H
#define TESTS_CHAOS_CHECK_LINEAR_H

#include <stddef.h>

#include "tests/chaos/check/player_model.h"

/* Of one player. Times are of one clock, of any unit; an answer is later than its call. */
struct timed_deed {
    struct deed_done done;
    int64_t called_at;
    int64_t answered_at; /* Not for OUTCOME_OPEN. */
};

enum verdict {
    VERDICT_HOLDS,
    VERDICT_BROKEN,    /* There is no such order. */
    VERDICT_UNDECIDED, /* The search would take more memory than it may. */
};

/* Why not: the longest order that was found, and what it cannot go on with. */
struct linear_failure {
    size_t placed; /* How many operations it explains. */
    size_t last;   /* The last of these; SIZE_MAX: it explains none. */
    size_t stuck;  /* Was answered, and fits nowhere after it. */
    struct player_state state;
};

/* How much a search remembers at most; each takes 16 bytes, and as much again to spare. */
#define LINEAR_TRIED_MAX 16000000u

/* `deeds`: in the order of their calls. *ret_failure is set with VERDICT_BROKEN. */
enum verdict linear_check(const struct timed_deed *deeds, size_t count,
                          struct linear_failure *ret_failure);

#endif
