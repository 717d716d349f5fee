/*
 * pending: writes that wait for their durability, and reads that wait for a majority.
 */
#ifndef NODE_CORE_MERGEABLE_PENDING_H
#define NODE_CORE_MERGEABLE_PENDING_H

#include "node/core/mergeable/replica.h"

#define MERGE_RESEND_MS 500u
/* What one tick sends again, about; the rest goes with the next ones. */
#define MERGE_RESEND_BYTES (8u * 1024u * 1024u)

/* NULL: MERGE_PENDING_MAX wait already. Zeroed but for its ticket, configuration and time; the
 * caller fills it in and keeps no pointer. */
struct merge_pending *merge_pending_new(struct merge_replica *replica, uint64_t now_ms);
struct merge_pending *merge_pending_find(struct merge_replica *replica, uint64_t ticket);
/* Enough members of each majority were heard lately; else a majority cannot be had now. */
bool merge_majority_is_near(const struct merge_replica *replica, uint64_t now_ms);

/* A peer has that write on its disk, by what it said under `config`. */
void merge_pending_ack(struct merge_replica *replica, const struct merge_peer *peer,
                       struct merge_dot dot, uint64_t config);
/* A peer's disk has all that its clock, just reported, says. */
void merge_pending_reported(struct merge_replica *replica, const struct merge_peer *peer);
/* A peer told its record for a read of a majority. */
void merge_pending_told(struct merge_replica *replica, struct merge_pending *read,
                        const struct merge_peer *peer, const struct merge_record *record);
/* Answers what has what it waited for. The configuration may have changed: then acknowledgements
 * of the lower one are forgotten. */
void merge_pending_settle(struct merge_replica *replica);
/* Sends again, and ends what waited too long. */
void merge_pending_tick(struct merge_replica *replica, uint64_t now_ms);

#endif
