/*
 * top: totals of targets while all else goes wrong. What a home's log says, added up from the
 * requests alone: which items count, by the dots of their sources; each item is what its source had
 * at that dot. Rows against that after every entry; lists against it in every answer; and once all
 * is quiet, totals against all edges that stand.
 */
#ifndef TESTS_SIM_FAVORITES_TOP_H
#define TESTS_SIM_FAVORITES_TOP_H

#include "tests/sim/oracle/answer.h"
#include "tests/sim/model/model.h"

/* A TakePartials is applied. */
void top_logged(struct change *c);
/* A ForgetPartials is applied. */
void top_forgotten(struct change *c);
void top_told_list(const struct told *t);
/* Targets whose total is not the sum of their edges yet; 0 in runs without favourites. */
uint32_t top_pending(const struct sim *sim);
/* Rows of targets to which no edge leads, in their homes or in the shards that had edges: they go,
 * once the homes have logged that the edges are gone. */
uint32_t top_left(const struct sim *sim);
/* All rows of totals, against the model. */
void top_check_rows(struct sim *sim);
void top_free_all(struct sim *sim);

/* ---- node_pull.c ---- */
struct sim_node;
struct sim_event;
#define SIM_PULL_NUMBER (1u << 20) /* sim_event.number of a puller's calls. */
/* Each tick of a node. */
void node_pull(struct sim *sim, struct sim_node *node);
void node_pull_answered(struct sim *sim, struct sim_node *node, const struct sim_event *event);
int64_t node_pulled_ms(const struct sim_node *node, uint32_t shard);
void node_pull_stop(struct sim_node *node);

#endif
