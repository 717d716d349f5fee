/*
 * absorb: a record comes in, from a peer, from the log or from this replica's own write. Its dots
 * join the clock only together with it.
 */
#ifndef NODE_CORE_MERGEABLE_ABSORB_H
#define NODE_CORE_MERGEABLE_ABSORB_H

#include "node/core/mergeable/incoming.h"
#include "node/core/mergeable/replica.h"

/* Merges it in and takes its dots, and those of its cells, into clock and index. ERR_FULL: a limit
 * of actors, context or erasures, or the record would pass MERGE_BYTES_MAX or MERGE_CELLS_MAX;
 * ERR_INVALID: another policy; nothing is changed by either. */
NODISCARD err merge_absorb(struct merge_replica *replica, const struct merge_incoming *incoming);
/* The same, and the log gets it. */
NODISCARD err merge_absorb_logged(struct merge_replica *replica,
                                  const struct merge_incoming *incoming);
/* Takes the dot of a record that is stored into clock and index. One that is too far above the
 * clock's base is left to `dots_above`: the record's context has it. */
void merge_take_dot(struct merge_replica *replica, struct merge_dot dot, struct merge_key *key);
/* What clocks now say need not be stored; a record that says nothing else is not stored at all. */
void merge_row_settle(struct merge_replica *replica, const struct merge_key *key);
/* The same for each row that says more than its cells. */
void merge_rows_settle(struct merge_replica *replica);
/* Erases an entity, as the strict log says. Logged. ERR_FULL: MERGE_ERASURES_MAX. ERR_INVALID: no
 * entity is called so. */
NODISCARD err merge_erase(struct merge_replica *replica, struct slice entity, uint64_t number);

#endif
