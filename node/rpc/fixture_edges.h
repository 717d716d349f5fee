/* fixture_edges: collections, edges from players to targets, what is told of them. Tests only. */
#ifndef NODE_RPC_FIXTURE_EDGES_H
#define NODE_RPC_FIXTURE_EDGES_H

#include "holdfast/v1/admin.pb-c.h"
#include "idl/method.h"
#include "node/core/favorite/favorite.h"
#include "node/rpc/fixture.h"

#define POLICY_HIGHEST HOLDFAST__V1__CONFLICT_POLICY__CONFLICT_POLICY_HIGHEST_VERSION
#define POLICY_LAST    HOLDFAST__V1__CONFLICT_POLICY__CONFLICT_POLICY_LAST_WRITE

/* A version of a collection, at the revision of that number; `edges_max` 0: its default. */
struct fixture_collection {
    uint64_t number, revision;
    const char *name;
    Holdfast__V1__ConflictPolicy policy;
    uint32_t edges_max;
    bool deleted;
};
void fixture_define(struct fixture *f, const struct fixture_collection *collection);
/* The same of a rate rule. */
struct fixture_rate_rule {
    uint64_t number, revision;
    const char *name, *subject;
    uint32_t limit, period_ms;
    bool deleted;
};
void fixture_define_rate(struct fixture *f, const struct fixture_rate_rule *rule);
/* The same of a rule about "favorites" that flags: by pace, or by age. */
struct fixture_flag_rule {
    uint64_t number, revision;
    uint32_t flag_above, period_ms;
    uint64_t account_age_ms;
};
void fixture_define_flag(struct fixture *f, const struct fixture_flag_rule *rule);
/* A player may change "favorites" as often as a rule can say; at revision 11. */
void fixture_define_haste(struct fixture *f);
/* "favorites", under number 7, at revision 10. */
void fixture_define_favorites(struct fixture *f);

/* One call; NULL: refused. */
struct fixture_edge {
    const char *player, *target, *collection;
    uint64_t ver;    /* 0: absent. */
    uint64_t if_ver; /* Plus one; 0: absent. */
    bool gone;       /* Unfavorite. */
    const char *op_id;
};
/* What was told, of either method, in static memory; NULL: refused. */
const Holdfast__V1__FavoriteResponse *fixture_edge(struct fixture *f,
                                                   const struct fixture_edge *edge);
/* Short for an edge of the default collection, without a `ver`. */
const Holdfast__V1__FavoriteResponse *fixture_favorite(struct fixture *f, const char *player,
                                                       const char *target);
const Holdfast__V1__FavoriteResponse *fixture_unfavorite(struct fixture *f, const char *player,
                                                         const char *target);

/* What a moderator decides about edges of a player. */
struct fixture_review {
    uint32_t method; /* METHOD_ACCEPT_EDGES, METHOD_REJECT_EDGES or METHOD_FLAG_EDGES. */
    const char *player;
    const char *target, *other; /* NULL: none. */
    const char *collection;     /* NULL: the default one. */
    const char *authority;      /* NULL: system:moderation. */
    const char *op_id;          /* NULL: a new one. */
    const char *after;          /* With `all`; NULL: from the newest on. */
    uint64_t number;            /* Of a collection; 0: by name. */
    bool all;
};
/* What was told, in static memory; `next_after` of METHOD_FLAG_EDGES alone. NULL: refused. */
const Holdfast__V1__FlagEdgesResponse *fixture_review(struct fixture *f,
                                                      const struct fixture_review *review);
/* Short for one edge of the default collection. */
const Holdfast__V1__FlagEdgesResponse *fixture_decide(struct fixture *f, uint32_t method,
                                                      const char *player, const char *target);

/* UINT64_MAX: refused. */
uint64_t fixture_partial(struct fixture *f, const char *collection, const char *target);
/* NULL: refused. */
const Holdfast__V1__FavoriteStatus *fixture_status(struct fixture *f, const char *player,
                                                   const char *target);
/* Pulls what the shard's own players favorited, of targets whose home it is, and logs it there;
 * then reads what is told of that. */
void fixture_take_totals(struct fixture *f);
/* Reads what is told of edges of the player and to "tetris", "pong" and "chess", and of what waits
 * for a review. Each may be refused. */
void fixture_read_favorites(struct fixture *f, const char *player);
/* Erases the player, and reads what is told of that; a few steps later undoes it, unless it stays.
 * Each may be refused. */
void fixture_erase(struct fixture *f, const char *player, bool stays);
/* All rows of edges fit each other: lists, targets and counts are those of the edges. Looks at the
 * database, after a checkpoint. */
void fixture_check_edges(struct fixture *f);

#endif
