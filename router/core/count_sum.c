#include "router/core/count_sum.h"

#include "runtime/base/check.h"

void count_sum_init(struct count_sum *sum, uint32_t shard_count, uint32_t target_count,
                    struct arena *arena)
{
    *sum = (struct count_sum){ .shard_count = shard_count, .target_count = target_count };
    sum->counts = arena_zalloc(arena, (target_count + 1) * sizeof *sum->counts);
    sum->has_told = arena_zalloc(arena, (shard_count + 1) * sizeof *sum->has_told);
}

err count_sum_add(struct count_sum *sum, const struct count_part *part)
{
    if (part->shard >= sum->shard_count || sum->has_told[part->shard] ||
        part->count != sum->target_count || part->collection_number == 0)
        return ERR_CORRUPT;
    if (sum->told > 0 && part->collection_number != sum->collection_number) {
        if (part->collection_number > sum->collection_number)
            sum->collection_number = part->collection_number;
        return ERR_CONFLICT;
    }
    for (uint32_t i = 0; i < sum->target_count; i++) {
        if (part->counts[i] > (uint64_t)INT64_MAX - sum->counts[i])
            return ERR_CORRUPT;
        sum->counts[i] += part->counts[i];
    }
    if (sum->told == 0 || part->at_ms < sum->from_ms)
        sum->from_ms = part->at_ms;
    if (sum->told == 0 || part->at_ms > sum->to_ms)
        sum->to_ms = part->at_ms;
    sum->collection_number = part->collection_number;
    sum->has_told[part->shard] = true;
    sum->told++;
    CHECK(sum->told <= sum->shard_count && sum->from_ms <= sum->to_ms);
    return ERR_OK;
}
