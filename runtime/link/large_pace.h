/*
 * large_pace: how fast large answers come over all links of one loop. To decrypt one and to make of
 * it what its caller gets costs its receiver, a router, some milliseconds. While many are wanted it
 * would do nothing else, and so would the nodes and the callers that share its processors. So peers
 * get credit for more when large answers have had less than half of the time, but for a burst as
 * long as one of them takes. Pure.
 */
#ifndef RUNTIME_LINK_LARGE_PACE_H
#define RUNTIME_LINK_LARGE_PACE_H

#include <stdint.h>

#define LARGE_BURST_NS     3000000u
#define LARGE_PAUSE_NS_MAX 50000000u /* Whatever one cost, large answers go on then. */

/* A zeroed one is valid: none has come. */
struct large_pace {
    uint64_t even_ns; /* When large answers will have had half of the time. */
};

/* Until `now_ns`, some of a large answer took `cost_ns` of the loop's time. */
void large_pace_spend(struct large_pace *pace, uint64_t now_ns, uint64_t cost_ns);
/* How long peers get no credit for more; 0: they may have it now. */
uint64_t large_pace_wait_ms(const struct large_pace *pace, uint64_t now_ns);

#endif
