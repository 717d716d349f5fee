/*
 * top_merge: the top list of all shards, of what each of them says. Every shard counts once, under
 * one number of the collection, or there is no list. However many shards there are, no more than
 * twice as many places are kept as are wanted. Pure.
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
    struct arena *arena; /* Of what does not grow. */
    uint32_t shard_count, told;
    uint32_t limit;             /* So many places are wanted. */
    uint64_t collection_number; /* 0: no shard has told it. */
    int64_t from_ms, to_ms;     /* What the shards say of when. */
    struct top_place
        *places; /* Room for twice as many: the best of them are chosen when it ends. */
    size_t count;
    bool chosen; /* The first `limit` places are in order: what is behind them is left out. */
    struct arena texts[2]; /* Of the targets, in turns: the texts of those chosen move. */
    uint32_t turn;
    bool *has_told; /* By shard. */
};

/* `limit`: 1 to TOP_LIMIT_MAX. */
void top_merge_init(struct top_merge *merge, uint32_t shard_count, uint32_t limit,
                    struct arena *arena);
/* The places are gone; the arena stays. Also of a zeroed merge. */
void top_merge_deinit(struct top_merge *merge);
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
void top_merge_finish(struct top_merge *merge);

#endif
