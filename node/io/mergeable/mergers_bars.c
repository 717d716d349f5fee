#include "node/io/mergeable/mergers_internal.h"

bool mergers_fits(const struct mergers *mergers, bool writes)
{
    return !writes || mergers_disk_is_full(mergers) || !mergers_disk_is_behind(mergers);
}

const char *mergers_bars(struct mergers *mergers, uint32_t shard, bool writes)
{
    if (writes && mergers_disk_is_full(mergers))
        return "this member's disk is full";
    if (!mergers->has_secret)
        return "this member has not read its secret yet";
    mergers_generation_follow(mergers, shard);
    return mergers_generation_bars(mergers, shard);
}
