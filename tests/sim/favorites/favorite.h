/*
 * favorite: edges from players to targets while all else goes wrong, and what must hold: the rules
 * said again from the requests alone, rows against them after every entry, and every answer.
 */
#ifndef TESTS_SIM_FAVORITES_FAVORITE_H
#define TESTS_SIM_FAVORITES_FAVORITE_H

#include "holdfast/v1/favorites.pb-c.h"
#include "tests/sim/oracle/answer.h"
#include "tests/sim/model/model.h"
#include "tests/sim/servers/request.h"

#define FAVORITE_COLLECTIONS 2u /* Their names are definition.c's. */
#define FAVORITE_TARGETS     4u

/* Every other run has them: the others are told as before there were any. */
bool favorite_runs(const struct sim *sim);
/* The shard that heard of definitions last knows the default collection. */
bool favorite_is_defined(const struct sim *sim);
void favorite_act(struct sim *sim, uint32_t server);
void favorite_free_all(struct sim *sim);

/* ---- requests, made of an op ---- */
char *favorite_collection(const struct sim_op *op);
char *favorite_target(const struct sim_op *op);
/* 0: absent. */
uint64_t favorite_ver(const struct sim_op *op);
/* The edge after which a list is to go on, as a place; false: from its beginning. */
bool favorite_place(const struct sim *sim, const struct sim_op *op, char ret_place[64]);

/* ---- the log ---- */
/* A DEFINE is applied. */
void favorite_defined(struct sim *sim, uint32_t shard, uint64_t index);
/* What a Favorite or an Unfavorite wanted, and was told. */
struct favorite_deed {
    const char *collection, *target;
    bool favorite, has_ver;
    uint64_t ver;
    const Holdfast__V1__FavoriteStatus *status;
    bool applied;
    uint32_t edges;
};
void favorite_carried_out(struct change *c, const struct favorite_deed *deed);
void favorite_refused(const struct change *c, const struct op_model *op, const char *collection,
                      const Holdfast__Internal__V1__Refusal *detail);
/* Refused for the moment, by a rate rule. */
void favorite_throttled(const struct change *c, const struct op_model *op,
                        const struct favorite_deed *deed);
/* All rows of edges, added up. */
void favorite_sum_up(struct sim *sim);

/* ---- answers ---- */
void favorite_told_list(const struct told *t);
void favorite_told_statuses(const struct told *t);
void favorite_told_partials(const struct told *t);
void favorite_told_by_target(const struct told *t);

#endif
