/*
 * definition: what a shard knows of the cluster's definitions (docs/definitions.md): a row of each,
 * and a head row that says how far the shard has followed.
 *
 * All versions of all definitions have one order, their stamp: the cluster's generation, which an
 * accepted restore of etcd raises, and the revision at which etcd got them. Versions come in spans
 * of that order without a gap, so what is at or below the head was here before: it may have been
 * replaced or deleted since, and changes nothing. No row is needed for what is gone.
 */
#ifndef NODE_CORE_DEFINITION_DEFINITION_H
#define NODE_CORE_DEFINITION_DEFINITION_H

#include "node/core/definition/definition_row.h"
#include "node/core/handler/handler.h"

/* Since which apply version there are definitions. */
#define DEFINITION_APPLY_VERSION 5u
/* From here on a currency that is swept leaves a later one of its name alone. */
#define DEFINITION_NAMES_APPLY_VERSION 10u
/* From here on the policy's row of a currency holds again once no definition declares it. */
#define DEFINITION_COVERS_APPLY_VERSION 10u
#define DEFINITION_BYTES_MAX            4096u /* Of one, as it comes. */
#define DEFINE_COUNT_MAX                64u   /* In one entry. */
#define DEFINITION_DAMAGE               "the row of a definition cannot be read"

/* Below 0, 0, above 0. */
int definition_order(uint64_t generation, uint64_t revision, uint64_t other_generation,
                     uint64_t other_revision);
/* ERR_NEED. A row that cannot be read is as if there were none: all is brought again. */
NODISCARD err definition_head_get(struct state *state, struct arena *arena, struct need *need,
                                  defined_head **ret_head);
/* Takes a span in. ERR_NEED; ERR_CONFLICT: refused, a limit would be passed. *ret_head: as it
 * stands after. Changes the policy's currencies last. */
NODISCARD err definition_take(struct apply_context *context,
                              const Holdfast__Internal__V1__DefineRequest *request,
                              defined_head **ret_head);
/* The currencies of definitions, put over those of a policy that has just been set; what they cover
 * is noted. ERR_NEED; ERR_CONFLICT: there are too many. `policy` is untouched on error. */
NODISCARD err definition_keep_currencies(struct apply_context *context, struct policy *policy);
/* The rows that it may touch. */
void definition_footprint(const Holdfast__Internal__V1__DefineRequest *request, struct need *keys);

#endif
