/*
 * counter: what players add to targets, and how much that is of this shard. What a player added to
 * a target and the shard's part of the target's total change in the same entry (docs/counters.md,
 * BREADTH section 20). The part is a partial as that of edges is: a sum in place of a count. So
 * totals, hours and top lists are those of node/core/top.
 */
#ifndef NODE_CORE_COUNTER_COUNTER_H
#define NODE_CORE_COUNTER_COUNTER_H

#include "holdfast/v1/counter.pb-c.h"
#include "node/core/counter/counter_row.h"
#include "node/core/definition/counter_rule.h"

/* Of one player in one counter. */
#define COUNTER_TARGETS_MAX 10000u

/* Before the log: all that can be said of an addition without its rows. ERR_INVALID. */
NODISCARD err counter_check(struct check_context *context,
                            const Holdfast__V1__AddToCounterRequest *request);
/* Adds the rows that counter_add looks at, where memory knows the counter: their keys hold its
 * number, which the request does not tell. */
void counter_foresee(struct state *state, struct arena *arena,
                     const Holdfast__V1__AddToCounterRequest *request, struct slice entity,
                     struct need *keys);
/* At apply. ERR_NEED; ERR_CONFLICT: refused. */
NODISCARD err counter_add(struct apply_context *context,
                          const Holdfast__V1__AddToCounterRequest *request,
                          Holdfast__V1__AddToCounterResponse *response);

/* What a row says, in the arena. */
Holdfast__V1__PlayerCounter *counter_told(struct arena *arena, struct slice target,
                                          const struct added_row *row);

#endif
