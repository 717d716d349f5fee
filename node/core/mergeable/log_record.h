/*
 * log_record: what the log of a mergeable shard has. Records stand there with their full context:
 * the clock at the time of a replay is a later one, and would claim what the record had not taken
 * in.
 *
 *   u8 1 RECORD   key, record, compact count, dots (u64, u64)
 *   u8 2 JOIN     u8 all closings, clock: everything of a peer was merged
 *   u8 3 ERASE    u8 size, entity, compact number
 *   u8 4 CLOSE    u64 actor
 *   u8 5 SYNC     u8: 1 begins to take everything in, 0 has done so
 *   u8 6 NAME     u64 actor, u64 member: before the first write of an actor
 *   u8 7 ERA      compact era: actors of lower eras are forgotten
 */
#ifndef NODE_CORE_MERGEABLE_LOG_RECORD_H
#define NODE_CORE_MERGEABLE_LOG_RECORD_H

#include "node/core/mergeable/incoming.h"
#include "node/core/mergeable/replica.h"

enum merge_log_kind {
    MERGE_LOG_RECORD = 1,
    MERGE_LOG_JOIN,
    MERGE_LOG_ERASE,
    MERGE_LOG_CLOSE,
    MERGE_LOG_SYNC,
    MERGE_LOG_NAME,
    MERGE_LOG_ERA
};

void merge_log_record(struct merge_replica *replica, const struct merge_incoming *incoming);
void merge_log_join(struct merge_replica *replica, const struct mclock *clock,
                    enum mclock_closings closings);
void merge_log_erase(struct merge_replica *replica, struct slice entity, uint64_t number);
void merge_log_close(struct merge_replica *replica, uint64_t actor);
void merge_log_sync(struct merge_replica *replica, bool begins);
void merge_log_name(struct merge_replica *replica, uint64_t actor, uint64_t member);
void merge_log_era(struct merge_replica *replica, uint16_t era);

#endif
