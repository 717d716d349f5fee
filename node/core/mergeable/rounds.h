/*
 * rounds: what a replica does as time passes: reports, pulls that got stuck, ends of actors and
 * eras, folding, waits.
 */
#ifndef NODE_CORE_MERGEABLE_ROUNDS_H
#define NODE_CORE_MERGEABLE_ROUNDS_H

#include "node/core/mergeable/replica.h"

/* Several times a second. `now_ms` is this machine's wall clock. */
void merge_tick(struct merge_replica *replica, uint64_t now_ms);
/* The shell's disk has the first `log_position` records of the log. */
void merge_durable(struct merge_replica *replica, uint64_t log_position);
/* A message of a peer. Anything but ERR_OK is for the shell's counters: ERR_CORRUPT malformed;
 * ERR_PERMISSION from no peer; ERR_STALE_EPOCH of another generation, shard or an earlier process;
 * others as merge_absorb and merge_pull_take. What is dropped comes again by anti-entropy. */
NODISCARD err merge_receive(struct merge_replica *replica, uint64_t now_ms, struct slice message);

#endif
