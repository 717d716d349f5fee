/*
 * operation_floor: below which time outcomes of UUIDv7 ids are forgotten (meta.floor_ms), who moves
 * it, and what that means for an id. DESIGN section 6, docs/operations.md.
 *
 * The rule, in all places: an id at or below the floor is OPERATION_EXPIRED if no row stands under
 * it, and only then. So the floor may pass an operation that is PENDING: its row stands, its
 * retries read it, it can be sealed, and it is settled as any other. The floor never goes back. A
 * row is removed only at or below a floor that stands from the same entry on.
 */
#ifndef NODE_CORE_HANDLER_OPERATION_FLOOR_H
#define NODE_CORE_HANDLER_OPERATION_FLOOR_H

#include "idl/limit.h"
#include "node/core/handler/outcome_row.h"

/* Before it an id at or below the floor was expired whatever stood under it, PRUNE stopped at the
 * first transfer that was PENDING, and a restore kept the greater floor of the two. */
#define FLOOR_APPLY_VERSION 10u

/* Whether the floor has passed this id: it is never carried out any more, if it is not yet. */
bool operation_floor_passed(const struct meta *meta, const struct op_id *id);
/* Whether the id is OPERATION_EXPIRED. `found`: what stands under it; STATE_MISSING: it was not
 * looked for, which tells of entries below FLOOR_APPLY_VERSION alone. */
bool operation_expired(const struct meta *meta, uint32_t version, const struct op_id *id,
                       enum state_found found);

/* The only ones who move the floor. Never down: ... */
void operation_floor_raise(struct meta *meta, uint64_t floor_ms);
/* ... for a policy with another window, before it holds: what was expired under the window that
 * ends stays so, if nothing stands under it. ... */
void operation_floor_keep(const struct apply_context *context, uint64_t window_ms);
/* ... and for a shard that takes over a backup: it has that one's rows, and so its floor. */
void operation_floor_take_over(const struct apply_context *context, const struct meta *backup);

/* An outcome that was decided so long after its id was made was settled late. */
#define OPERATION_LATE_MS ((uint64_t)LIMIT_OP_ID_AHEAD_MS)

/*
 * Whether PRUNE may remove this outcome of an id at or below its floor. Not while it is PENDING:
 * what became of it must still be learned. Nor if it was decided after `decided_ms`, for the
 * callers who waited for that. A row that cannot be read goes when its time has come.
 */
bool operation_floor_lets_go(struct slice value, uint64_t decided_ms);

#endif
