/*
 * top_merge: the top list of all shards, of what each of them says. Every shard counts once, under
 * one number of the collection, or there is no list. Pure.
 */
#ifndef ROUTER_CORE_TOP_MERGE_H
#define ROUTER_CORE_TOP_MERGE_H

#include "holdfast/internal/v1/top.pb-c.h"
#include "runtime/base/arena.h"

#define TOP_LIMIT_MAX     1000u
#define TOP_LIMIT_DEFAULT 100u
/* Totals that were pulled longer ago are told as stale. */
#define TOP_FRESH_MS 10000

struct top_place {
    const char *target;
    uint64_t count;
};

struct top_merge {
    struct arena *arena; /* Of the targets. */
    uint32_t shard_count, told;
    uint64_t collection_number; /* 0: no shard has told it. */
    int64_t from_ms, to_ms;     /* What the shards say of when. */
    struct top_place *places;
    size_t count, capacity;
    bool *has_told; /* By shard. */
};

void top_merge_init(struct top_merge *merge, uint32_t shard_count, struct arena *arena);
/* ERR_CORRUPT: the answer makes no sense. ERR_CONFLICT: the shard knows the collection under
 * another number: collection_number is the later one of both. ERR_UNAVAILABLE: its totals were not
 * pulled yet. The rest of the merge is of no use then. */
NODISCARD err top_merge_add(struct top_merge *merge, uint32_t shard,
                            const Holdfast__Internal__V1__GetShardTopResponse *said);
static inline bool top_merge_is_whole(const struct top_merge *merge)
{
    return merge->told == merge->shard_count;
}
/* The highest first, at one count by target; at most `limit` are left. */
void top_merge_finish(struct top_merge *merge, uint32_t limit);

#endif
