/*
 * counter: what players add to counters while all else goes wrong, and what must hold: the rules
 * said again from the requests alone, rows against them after every entry, and every answer. Their
 * steps stand among those of edges (favorite_model.h), so totals and top lists are checked as these
 * are.
 */
#ifndef TESTS_SIM_FAVORITES_COUNTER_H
#define TESTS_SIM_FAVORITES_COUNTER_H

#include "holdfast/v1/counter.pb-c.h"
#include "tests/sim/oracle/answer.h"
#include "tests/sim/model/definition.h"
#include "tests/sim/model/model.h"

#define COUNTER_NAMES 2u
/* definition.c makes and deletes them. */
extern const char *const counter_names[COUNTER_NAMES];

/* Every other run with favourites has them. */
bool counter_runs(const struct sim *sim);
void counter_act(struct sim *sim, uint32_t server, uint32_t player);

/* ---- requests, made of an op ---- */
char *counter_name(const struct sim_op *op);
/* GetPartials and GetShardTop: the op is about a counter. */
bool counter_is_asked(const struct sim_op *op);

/* ---- the log ---- */
void counter_carried_out(struct change *c, const Holdfast__V1__AddToCounterResponse *told);
void counter_refused(const struct change *c, const struct op_model *op,
                     const Holdfast__Internal__V1__Refusal *detail);
/* As of an index; NULL: there is none of that name. */
const struct sim_counter *counter_life(const struct sim *sim, uint32_t shard, const char *name,
                                       uint64_t index);
/* All rows of a shard, added up. */
struct counter_sums {
    uint64_t targets, value;       /* By players' rows. */
    uint64_t adders, adders_value; /* By their targets'. */
};
err counter_row_add(struct slice key, struct slice value, struct counter_sums *sums);
void counter_check_sums(struct sim *sim, uint32_t shard, const struct counter_sums *sums);

/* ---- answers ---- */
void counter_told_list(const struct told *t);
void counter_told_values(const struct told *t);

#endif
