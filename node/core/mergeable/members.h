/*
 * members: configurations of a mergeable shard, when a replica has everything again, when a removed
 * one may go, and when an actor is at its end.
 */
#ifndef NODE_CORE_MERGEABLE_MEMBERS_H
#define NODE_CORE_MERGEABLE_MEMBERS_H

#include "node/core/mergeable/replica.h"

/* As the strict log says; a configuration below the present one changes nothing. At least one
 * member. ERR_INVALID: more departing members than MERGE_DEPARTING_MAX. */
NODISCARD err merge_configure(struct merge_replica *replica, const struct merge_members *members);

/* It has lost what it acknowledged, or never had it: it takes everything in first. Logged. */
void merge_sync_begin(struct merge_replica *replica);
/* Ends that once enough peers were pulled from: of n old members so many that every majority that
 * acknowledged a write with this replica's help has one of them, or all, where some of them have
 * lost what they had too: they have no more to give. Logged. */
void merge_sync_settle(struct merge_replica *replica);
/* What a voided clock had and no peer named is this replica's own to tell, and so are dots that
 * were above the clock: dots of the index and of cells join the clock. */
void merge_sync_announce(struct merge_replica *replica);

/* The configuration for which this replica has what a majority of the old members had; 0: none. */
uint64_t merge_ready_config(const struct merge_replica *replica);
/* In a joint configuration: that new member, which this replica may be, has said that it is ready.
 */
bool merge_member_is_ready(const struct merge_replica *replica, uint64_t member);
/* In a joint configuration: every new member is ready, so the old ones may be left. */
bool merge_may_leave(const struct merge_replica *replica);
/* This replica was removed and a member has on disk all that it holds: it may delete (DEPART). */
bool merge_may_delete(const struct merge_replica *replica);

/* From now on this process writes under its actor of that era; named in clock and log at once, so
 * that its disk knows the era. */
void merge_take_actor(struct merge_replica *replica, uint16_t era);
/* Closes the actors of processes that ended, where all members and departing ones agree on their
 * dots. Logged. */
void merge_close_actors(struct merge_replica *replica);
/* Goes to a later era where another process did, or where many closed actors are of its own. */
void merge_follow_era(struct merge_replica *replica);
/* Forgets the actors of eras under which no member writes, where all members have closed them.
 * Logged. */
void merge_forget_actors(struct merge_replica *replica);
/* Forgets which record a dot belongs to once every peer has it. */
void merge_prune_index(struct merge_replica *replica);

#endif
