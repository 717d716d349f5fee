/*
 * pending: writes that wait for their durability, and reads that wait for a majority.
 */
#ifndef NODE_CORE_MERGEABLE_PENDING_H
#define NODE_CORE_MERGEABLE_PENDING_H

#include "node/core/mergeable/replica.h"

#define MERGE_RESEND_MS 500u
/* What one tick sends again, about; the next one goes on behind it. */
#define MERGE_RESEND_BYTES (8u * 1024u * 1024u)

/* Whether one more may wait, for a majority of a record of so many bytes (0: for no majority).
 * NULL: it may; else the field of a refusal, and its limit. */
const char *merge_pending_full(const struct merge_replica *replica, uint64_t bytes,
                               uint64_t *ret_limit);
/* NULL: it may not. Zeroed but for its ticket, bytes, configuration and time; the caller fills it
 * in and keeps no pointer. */
struct merge_pending *merge_pending_new(struct merge_replica *replica, uint64_t now_ms,
                                        uint64_t bytes);
struct merge_pending *merge_pending_find(struct merge_replica *replica, uint64_t ticket);
/* Enough members of each majority were heard lately; else a majority cannot be had now. */
bool merge_majority_is_near(const struct merge_replica *replica, uint64_t now_ms);

/* A peer has that write on its disk, by what it said under `config`. */
void merge_pending_ack(struct merge_replica *replica, const struct merge_peer *peer,
                       struct merge_dot dot, uint64_t config);
/* A peer's disk has all that its clock, just reported, says. */
void merge_pending_reported(struct merge_replica *replica, const struct merge_peer *peer);
/* A peer told its record for a read of a majority. What has no room is left out: it is asked for
 * again. */
void merge_pending_told(struct merge_replica *replica, struct merge_pending *read,
                        const struct merge_peer *peer, const struct merge_record *record);
/* Answers what has what it waited for. The configuration may have changed: then acknowledgements
 * of the lower one are forgotten. */
void merge_pending_settle(struct merge_replica *replica);
/* Sends again, and ends what waited too long. */
void merge_pending_tick(struct merge_replica *replica, uint64_t now_ms);

#endif
