/* rate: rate rules, said again from the edges that changed and the definitions of the moment. */
#ifndef TESTS_SIM_FAVORITES_RATE_H
#define TESTS_SIM_FAVORITES_RATE_H

#include "tests/sim/model/definition.h"
#include "tests/sim/favorites/favorite_model.h"

/* Half of the runs with favourites have definitions of rate rules. */
bool rate_runs(const struct sim *sim);
/* What is in force about a collection of that name in a shard; how many, at least one. */
uint32_t rate_rules(struct sim *sim, uint32_t shard, const char *subject,
                    struct sim_rule ret_rules[SIM_RULES_MAX + 1]);
/* What the rules of the moment flag this edge for, if the entry makes it: FlagReason. */
uint32_t rate_flag(const struct change *c, const struct edge_step *edge);
/* The entry changes this edge, or makes it: every rule must have had room. */
void rate_used(const struct change *c, const struct edge_step *edge, bool makes);
/* The entry is refused: some rule must have had none, and the caller is told until when. */
void rate_refused(const struct change *c, const struct op_model *op, const struct edge_step *edge);

#endif
