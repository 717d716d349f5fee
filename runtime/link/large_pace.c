#include "runtime/link/large_pace.h"

#define NS_PER_MS   1000000u
#define DEBT_NS_MAX (LARGE_BURST_NS + LARGE_PAUSE_NS_MAX)

void large_pace_spend(struct large_pace *pace, uint64_t now_ns, uint64_t cost_ns)
{
    uint64_t latest_ns = now_ns + DEBT_NS_MAX;
    uint64_t begun_ns = now_ns > cost_ns ? now_ns - cost_ns : 0;
    uint64_t from_ns = pace->even_ns > begun_ns ? pace->even_ns : begun_ns;

    if (from_ns >= latest_ns)
        return;
    pace->even_ns = cost_ns < (latest_ns - from_ns) / 2 ? from_ns + 2 * cost_ns : latest_ns;
}

uint64_t large_pace_wait_ms(const struct large_pace *pace, uint64_t now_ns)
{
    uint64_t free_ns = now_ns + LARGE_BURST_NS;

    if (pace->even_ns <= free_ns)
        return 0;
    return (pace->even_ns - free_ns + NS_PER_MS - 1) / NS_PER_MS;
}
