/*
 * disk: what the shell keeps of a replica, and how a replica comes back.
 *
 * The shell keeps a checkpoint and the log since then. A checkpoint is merge_state_encode and, for
 * each row of the store, its key and merge_record_encode of its record, all of one moment and in
 * one batch, taken when the log is durable up to it. The log may be longer than that: what is
 * replayed once more changes nothing. Where merge_start voided the clock, the shell takes a
 * checkpoint at once and begins a new log in the same batch: what the old one says of the clock
 * holds no more. To recover: merge_new, merge_state_restore, merge_row_restore for each row,
 * merge_replay for each record of the log, merge_start. A row that turns out to be unreadable later
 * means to do all this again.
 */
#ifndef NODE_CORE_MERGEABLE_DISK_H
#define NODE_CORE_MERGEABLE_DISK_H

#include "node/core/mergeable/replica.h"

/* u8 format (1), u64 generation, u64 shard, u64 hlc, u8 syncing, clock, erasures, index. */
void merge_state_encode(const struct merge_replica *replica, struct buf *out);
/* Of which generation the state is; 0: it cannot be read. */
uint64_t merge_state_generation(struct slice state);
/* Into a new replica. ERR_CORRUPT: then nothing of this disk can be used; start with `whole` false.
 * ERR_STALE_EPOCH: of another generation or shard. */
NODISCARD err merge_state_restore(struct merge_replica *replica, struct slice state);
/* ERR_CORRUPT: the row is unreadable; the replica notes it, and merge_start voids the clock. `key`
 * NULL: the key is, too. */
NODISCARD err merge_row_restore(struct merge_replica *replica, struct merge_key *key,
                                struct slice row);
/* ERR_CORRUPT: malformed. Then the records behind it cannot be used either, and merge_start is told
 * that the disk is not whole. ERR_FULL, ERR_INVALID as of merge_absorb: likewise. */
NODISCARD err merge_replay(struct merge_replica *replica, struct slice log_record);

/* Begins. `whole`: the disk has all that this member ever acknowledged, or the shard is new; false
 * for a lost or older disk and for a member that just joins. With an unreadable row, or without a
 * whole disk, it takes everything in from its peers before it counts. ERR_INVALID as of
 * merge_configure. */
NODISCARD err merge_start(struct merge_replica *replica, const struct merge_members *members,
                          bool whole);

#endif
