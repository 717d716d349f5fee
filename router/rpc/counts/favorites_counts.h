/* favorites_counts: what is gathered as callers are told it. */
#ifndef ROUTER_RPC_COUNTS_FAVORITES_COUNTS_H
#define ROUTER_RPC_COUNTS_FAVORITES_COUNTS_H

#include "holdfast/v1/favorites.pb-c.h"
#include "router/rpc/counts/count_gather.h"

static inline Holdfast__V1__TargetCount favorites_count_of(const char *target,
                                                           const struct count_told *told)
{
    Holdfast__V1__TargetCount count = HOLDFAST__V1__TARGET_COUNT__INIT;

    count.target_id = text_lend(target);
    count.count = told->known.count;
    count.as_of_from_ms = told->known.from_ms;
    count.as_of_to_ms = told->known.to_ms;
    count.stale = told->stale;
    return count;
}

#endif
