/*
 * review: edges that wait for a person. An edge that a rule, or a moderator, flags stands for its
 * player, but no count has it from that very entry on, until a moderator accepts it: then it counts
 * in the hour in which it was made. One that is rejected is taken away, and flagged again if it is
 * made again (docs/abuse.md). The row of each that waits is in TABLE_REVIEW, by since when.
 */
#ifndef NODE_CORE_FAVORITE_REVIEW_H
#define NODE_CORE_FAVORITE_REVIEW_H

#include "node/core/favorite/edge.h"

enum review_decision { REVIEW_ACCEPT, REVIEW_REJECT, REVIEW_FLAG };

/* What a moderator wants. */
struct review_call {
    const char *collection; /* As the request has it. */
    uint64_t number;        /* In place of a name; 0: none. */
    size_t count;
    char *const *targets;
    const char *reason;
    bool all;          /* REVIEW_FLAG: the player's edges, from `after` on. */
    const char *after; /* A place (favorite_place_print); empty: from the newest on. */
};

struct review_result {
    uint32_t edges;   /* That were changed. */
    const char *next; /* With `all`: the place after the last one; empty: there are no more. */
};

/* Before the log. ERR_INVALID. */
NODISCARD err review_check(struct check_context *context, const struct review_call *call,
                           enum review_decision decision);
/* At apply, of edges of the operation's player. All that are named, or none. ERR_NEED;
 * ERR_CONFLICT: refused. */
NODISCARD err review_decide(struct apply_context *context, const struct review_call *call,
                            enum review_decision decision, struct review_result *ret_result);

#endif
