/*
 * drift: what one node does, little by little, about counts that are not what they count: it has
 * the shards that it owns compare some rows each second (CheckCounts), one shard after the other,
 * and remembers what was found. Pure: the shell makes the calls, tells the time and what is owned.
 * Nothing here is state, and nothing is mended here: docs/rebuild.md.
 */
#ifndef NODE_CORE_TOP_DRIFT_H
#define NODE_CORE_TOP_DRIFT_H

#include "runtime/base/buf.h"

#define DRIFT_EVERY_MS 1000u
#define DRIFT_ROWS     64u /* Of each kind, in one call. */

struct drift;

struct drift *drift_new(uint32_t shard_count);
void drift_free(struct drift *drift);

/* The next call to a shard of this node's. The request stays as it is until it is answered. False:
 * one is out, it is too early, or the node owns no shard. */
bool drift_next(struct drift *drift, uint64_t now_ms, const bool *owned, uint32_t *ret_shard,
                struct slice *ret_request);
/* The answer's body; not `ok`: it failed, and the shard is compared again from the beginning. */
void drift_answered(struct drift *drift, bool ok, struct slice body);

struct drift_stats {
    uint64_t targets; /* Compared. */
    uint64_t passes;  /* Shards that were compared from end to end. */
    uint64_t failed;
    /* Of the shards that the node owns, in their last pass, or in this one if that has found more:
     * targets that differ, and by how much at most. */
    uint64_t different, largest;
};
struct drift_stats drift_stats(const struct drift *drift);

#endif
