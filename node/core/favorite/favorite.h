/*
 * favorite: edges from players to targets, and how many lead to a target from this shard. The count
 * changes in the entry of the edge itself (docs/favorites.md, BREADTH section 20).
 *
 * An edge that is gone is remembered with its `ver`, so that a late call with a lower one does not
 * bring it back: the last FAVORITE_GONE_MAX of each player and collection.
 */
#ifndef NODE_CORE_FAVORITE_FAVORITE_H
#define NODE_CORE_FAVORITE_FAVORITE_H

#include "holdfast/v1/favorites.pb-c.h"
#include "node/core/definition/collection.h"
#include "node/core/favorite/partial.h"

#define FAVORITE_GONE_MAX 1000u
#define FAVORITE_VER_MAX  9007199254740991ull /* 2^53 - 1: exact in every JSON reader. */

/* What a caller wants of one edge. */
struct favorite_call {
    const char *op_id, *collection; /* As the request has them. */
    const char *target;
    bool favorite;          /* Else it is to go. */
    const uint64_t *ver;    /* NULL: the next one. */
    const uint64_t *if_ver; /* NULL: any. */
};

struct favorite_result {
    Holdfast__V1__FavoriteStatus *status; /* As it stands after, in the arena. */
    bool applied;
    uint32_t edges;
};

/* Before the log. ERR_INVALID. */
NODISCARD err favorite_check(struct check_context *context, const struct favorite_call *call);
/* INVALID_ARGUMENT under `field`: it could be no target's id. */
NODISCARD err favorite_target_check(struct arena *arena, struct refusal *refusal, const char *field,
                                    const char *target);
/* 1 to 200 targets, each once; `list` is the field's name. */
NODISCARD err favorite_targets_check(struct arena *arena, struct refusal *refusal, size_t count,
                                     char *const *targets);
/* Adds the rows that favorite_change looks at, where memory knows the collection: their keys hold
 * its number, which the request does not tell. */
void favorite_foresee(struct state *state, struct arena *arena, const struct favorite_call *call,
                      struct slice entity, struct need *keys);
/* At apply. ERR_NEED; ERR_CONFLICT: refused. */
NODISCARD err favorite_change(struct apply_context *context, const struct favorite_call *call,
                              struct favorite_result *ret_result);

/* What a row says, in the arena; `row` NULL: there is none. */
Holdfast__V1__FavoriteStatus *favorite_status(struct arena *arena, struct slice target,
                                              const struct favorite_row *row);

/* Each of these: ERR_NEED; ERR_CORRUPT: the row cannot be read. All zero if there is none. */
NODISCARD err favorite_find(struct state *state, const struct favorite_key *edge, struct need *need,
                            struct favorite_row *ret_row);
NODISCARD err favorites_find(struct state *state, const struct favorite_key *edge,
                             struct need *need, struct favorites_row *ret_row);
void favorites_store(struct apply_context *context, const struct favorite_key *edge,
                     const struct favorites_row *row);

#endif
