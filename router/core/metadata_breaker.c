#include "router/core/metadata_breaker.h"

#include "runtime/base/check.h"

bool metadata_breaker_asks(struct metadata_breaker *breaker, uint64_t now_ms)
{
    if (breaker->failures < METADATA_FAILURES)
        return true;
    if (breaker->trying || now_ms < breaker->rests_until_ms)
        return false;
    breaker->trying = true;
    return true;
}

void metadata_breaker_succeeded(struct metadata_breaker *breaker)
{
    *breaker = (struct metadata_breaker){ 0 };
}

void metadata_breaker_failed(struct metadata_breaker *breaker, uint64_t now_ms)
{
    bool was_open = metadata_breaker_is_open(breaker);

    if (was_open && !breaker->trying)
        return; /* It was asked before the rest began. */
    breaker->trying = false;
    breaker->failures++;
    if (breaker->failures < METADATA_FAILURES)
        return;
    breaker->rest_ms = was_open ? breaker->rest_ms * 2 : METADATA_REST_MS;
    if (breaker->rest_ms > METADATA_REST_MS_MAX)
        breaker->rest_ms = METADATA_REST_MS_MAX;
    breaker->rests_until_ms = now_ms + breaker->rest_ms;
    breaker->failures = METADATA_FAILURES;
    CHECK(metadata_breaker_is_open(breaker));
}
