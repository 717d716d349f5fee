#include "runtime/link/large_pace.h"

#define NS_PER_MS 1000000u

void large_pace_spend(struct large_pace *pace, uint64_t now_ns, uint64_t cost_ns)
{
    uint64_t from_ns = pace->until_ns > now_ns ? pace->until_ns : now_ns;
    uint64_t latest_ns = now_ns + LARGE_PAUSE_NS_MAX;

    pace->until_ns = latest_ns;
    if (from_ns < latest_ns && cost_ns < latest_ns - from_ns)
        pace->until_ns = from_ns + cost_ns;
}

uint64_t large_pace_wait_ms(const struct large_pace *pace, uint64_t now_ns)
{
    if (pace->until_ns <= now_ns)
        return 0;
    return (pace->until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
}
