/*
 * folding: counters of this replica are folded where every member has their increments (counter.h).
 *
 * A fold is no write: it has no dot, no message and no record in the log, and a replica that has
 * not done it yet says the same. It takes away what a reset could still need to tell apart, so all
 * of this has to hold: every member has the increment on disk, none takes everything in, all see
 * the same processes, and this replica has all that they had when they said so. Then a reset that
 * saw a part of what is folded is known here, and every later one sees all of it.
 */
#ifndef NODE_CORE_MERGEABLE_FOLDING_H
#define NODE_CORE_MERGEABLE_FOLDING_H

#include "node/core/mergeable/counter.h"
#include "node/core/mergeable/replica.h"

/* What may be folded or swept now; borrows the replica. */
struct merge_folding merge_folding_at(struct merge_replica *replica, uint64_t now_ms);
/* Folds the counters of all records that may be folded. */
void merge_counters_fold(struct merge_replica *replica, uint64_t now_ms);

#endif
