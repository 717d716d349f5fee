/*
 * edge: one edge from a player to a target as an entry changes it: its rows, its player's and its
 * target's. What decides is elsewhere: players (favorite.h) and moderators (review.h).
 */
#ifndef NODE_CORE_FAVORITE_EDGE_H
#define NODE_CORE_FAVORITE_EDGE_H

#include "node/core/favorite/favorite_row.h"
#include "node/core/favorite/partial.h"
#include "node/core/handler/handler.h"

#define REVIEW_TARGETS_MAX ENTRY_COUNTS_MAX /* Of one decision. */
#define FAVORITE_GONE_MAX  1000u
#define FAVORITE_VER_MAX   9007199254740991ull /* 2^53 - 1: exact in every JSON reader. */

struct favorite_edge {
    struct apply_context *context;
    struct favorite_key key;
    struct favorite_row row;  /* As it stands; `ver` 0: there is none. */
    struct favorites_row own; /* The player's, in this collection. */
    struct partial_row partial;
    err row_read, own_read, partial_read; /* What came of reading them. */
};

/* Each of these: ERR_NEED; ERR_CORRUPT: the row cannot be read. All zero if there is none. */
NODISCARD err favorite_find(struct state *state, const struct favorite_key *edge, struct need *need,
                            struct favorite_row *ret_row);
NODISCARD err favorites_find(struct state *state, const struct favorite_key *edge,
                             struct need *need, struct favorites_row *ret_row);
void favorites_store(struct apply_context *context, const struct favorite_key *edge,
                     const struct favorites_row *row);

/* Fills in what rows say of the edge that `key` names. Every missing row is noted before ERR_NEED.
 */
NODISCARD err edge_find(struct favorite_edge *edge);
/* Once they are found. ERR_CONFLICT: refused, since a row cannot be read, or they contradict each
 * other. */
NODISCARD err edge_check(const struct favorite_edge *edge);
/* Whether a row says anything of it. */
static inline bool edge_was_there(const struct favorite_edge *edge)
{
    return edge->row.ver > 0;
}
/* The next `ver`. */
uint64_t edge_ver_next(const struct favorite_edge *edge);

/* The edge comes to be; it stood not. `flag`, of enum edge_flag: it waits for a review. ERR_NEED.
 */
NODISCARD err edge_make(struct favorite_edge *edge, uint64_t ver, enum edge_flag flag);
/* What it is already: only its `ver` rises. */
void edge_keep(struct favorite_edge *edge, uint64_t ver);
/* The edge goes, or is known to be gone from here on. `flag`: what it is flagged for if it is made
 * again. ERR_NEED; ERR_CONFLICT: refused, since a row cannot be read. */
NODISCARD err edge_take_away(struct favorite_edge *edge, uint64_t ver, enum edge_flag flag);
/* An edge that counts waits for a review from here on. ERR_NEED. */
NODISCARD err edge_flag(struct favorite_edge *edge, enum edge_flag flag);
/* An edge that waits counts from here on, in the hour in which it was made. ERR_NEED. */
NODISCARD err edge_accept(struct favorite_edge *edge);

/* ---- erasures ---- */
/* The edge, which stands in its player's list since key.at_ms, stands with its target no more, so
 * counts do not have it; and does again, flagged if it was. Its own rows stay. Nothing is done
 * where that is so already. A count that cannot be read is left to its repair. ERR_NEED. */
NODISCARD err edge_withdraw(struct favorite_edge *edge);
NODISCARD err edge_put_back(struct favorite_edge *edge);
/* The row of the edge, which key.part says to stand or to be gone, goes, also from what waits, and
 * its player's counts fall. A count that cannot be read goes as a whole. ERR_NEED. */
NODISCARD err edge_remove(struct favorite_edge *edge);
/* After edges were removed, `taken_max` at most: since when the first of all that wait in the shard
 * does. ERR_NEED. */
NODISCARD err review_since_renew(struct apply_context *context, uint32_t taken_max);

#endif
