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
#include "node/core/favorite/edge.h"

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

/* A place between a player's edges, as cursors have it: since when an edge stands, a colon, its
 * target. In the arena. ERR_INVALID: the text is none; *ret_target points into it. */
char *favorite_place_print(struct arena *arena, uint64_t at_ms, const char *target);
NODISCARD err favorite_place_parse(const char *place, uint64_t *ret_at_ms,
                                   struct slice *ret_target);

/* What a row says, in the arena; `row` NULL: there is none. */
Holdfast__V1__FavoriteStatus *favorite_status(struct arena *arena, struct slice target,
                                              const struct favorite_row *row);

#endif
