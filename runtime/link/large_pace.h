/*
 * large_pace: how fast large answers come over all links of one loop. What one costs its receiver
 * (a router makes JSON of it) cannot be cut, so while many are wanted, every small call would find
 * one being made. After each the loop has as much time for all else before peers get credit for
 * more: large answers never take more than half of a loop that has other work. Pure.
 */
#ifndef RUNTIME_LINK_LARGE_PACE_H
#define RUNTIME_LINK_LARGE_PACE_H

#include <stdint.h>

/* However long one took, large answers go on then. */
#define LARGE_PAUSE_NS_MAX 50000000u

/* A zeroed one is valid: none has come. */
struct large_pace {
    uint64_t until_ns;
};

/* A large answer was dealt with, which took `cost_ns` of the loop's processor time. */
void large_pace_spend(struct large_pace *pace, uint64_t now_ns, uint64_t cost_ns);
/* How long peers get no credit for more; 0: they may have it now. */
uint64_t large_pace_wait_ms(const struct large_pace *pace, uint64_t now_ns);

#endif
