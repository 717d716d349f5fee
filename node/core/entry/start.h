/*
 * start: the body of START, the first entry of every epoch. It pins the log it continues, so
 * that comparing version vectors compares logs. DESIGN section 4.
 */
#ifndef NODE_CORE_ENTRY_START_H
#define NODE_CORE_ENTRY_START_H

#include "node/core/entry/vector.h"
#include "runtime/base/buf.h"
#include "runtime/base/hash.h"

#define MEMBERS_MAX 7u

/* Who replicates a shard. `config` rises with every change of members. */
struct membership {
    uint64_t config;
    uint32_t count;
    uint32_t new_count;            /* Above 0 only in a joint phase. */
    uint64_t members[MEMBERS_MAX]; /* Replica ids, ascending. */
    uint64_t new_members[MEMBERS_MAX];
    uint64_t learner; /* Gets entries and counts in no majority; 0: none. */
};

struct start {
    uint64_t base_index; /* Of the entry before START; 0 for an empty log. */
    struct hash128 base_hash;
    struct vector base; /* Version vector before START. */
    struct membership membership;
    uint64_t generation;
    uint32_t apply_version;
};

void start_encode(const struct start *start, struct buf *out);
/* ERR_CORRUPT: malformed; *ret_start untouched. */
NODISCARD err start_decode(struct slice bytes, struct start *ret_start);

bool membership_has(const struct membership *membership, uint64_t replica);
/* A member, or the learner: it is to hold the shard. */
bool membership_names(const struct membership *membership, uint64_t replica);
/* True when `acks` (a bit per place in members / new_members) hold a majority of the members,
 * and in a joint phase of the new members too. */
bool membership_quorum(const struct membership *membership, uint32_t acks, uint32_t new_acks);

#endif
