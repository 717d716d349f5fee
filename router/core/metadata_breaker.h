/*
 * metadata_breaker: whether an endpoint of metadata is asked at all. After METADATA_FAILURES in a
 * row it rests for a while, which doubles with each failure after that; then one request tries it.
 * Pure: the time is told.
 */
#ifndef ROUTER_CORE_METADATA_BREAKER_H
#define ROUTER_CORE_METADATA_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#define METADATA_FAILURES    5u
#define METADATA_REST_MS     1000u
#define METADATA_REST_MS_MAX 30000u

/* All zero: nothing went wrong. */
struct metadata_breaker {
    uint32_t failures; /* In a row. */
    uint32_t rest_ms;
    uint64_t rests_until_ms;
    bool trying; /* The one request is under way. */
};

/* Whether it may be asked now; then one of the others has to be called. */
bool metadata_breaker_asks(struct metadata_breaker *breaker, uint64_t now_ms);
void metadata_breaker_succeeded(struct metadata_breaker *breaker);
void metadata_breaker_failed(struct metadata_breaker *breaker, uint64_t now_ms);
/* It rests, or one request tries whether it may go on. */
static inline bool metadata_breaker_is_open(const struct metadata_breaker *breaker)
{
    return breaker->failures >= METADATA_FAILURES;
}

#endif
