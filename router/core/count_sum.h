/*
 * count_sum: adds up what the shards say of some targets' counts. Every shard counts once, under
 * one number of the collection, or there is no sum. Pure.
 */
#ifndef ROUTER_CORE_COUNT_SUM_H
#define ROUTER_CORE_COUNT_SUM_H

#include "runtime/base/arena.h"

struct count_sum {
    uint32_t shard_count;
    uint32_t target_count;
    uint32_t told;              /* Shards. */
    uint64_t collection_number; /* 0: no shard has told it. */
    int64_t from_ms;            /* Milliseconds since 1970: of the shard that was read first, */
    int64_t to_ms;              /* and of the one that was last. */
    uint64_t *counts;
    bool *has_told; /* By shard. */
};

/* What one shard says. */
struct count_part {
    uint32_t shard;
    uint64_t collection_number;
    int64_t at_ms;
    size_t count;
    const uint64_t *counts;
};

/* Memory comes from the arena. */
void count_sum_init(struct count_sum *sum, uint32_t shard_count, uint32_t target_count,
                    struct arena *arena);
/*
 * ERR_CORRUPT: no such shard, one that has told, another number of counts, or a sum past 2^63: the
 * answer makes no sense. ERR_CONFLICT: the shard knows the name of the collection under another
 * number, so it was made again meanwhile: collection_number is the later one of both, and the rest
 * of the sum is of no use.
 */
NODISCARD err count_sum_add(struct count_sum *sum, const struct count_part *part);
static inline bool count_sum_is_whole(const struct count_sum *sum)
{
    return sum->told == sum->shard_count;
}

#endif
