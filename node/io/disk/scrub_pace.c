#include "node/io/disk/scrub_pace.h"

#include "runtime/base/check.h"

#define STEPS_PER_S   8u
#define US_PER_S      1000000u
#define FIRST_DIVISOR 16u

uint32_t scrub_pace_step_bytes(uint64_t rate_bytes_per_s)
{
    uint64_t bytes = rate_bytes_per_s / STEPS_PER_S;

    CHECK(rate_bytes_per_s > 0);
    if (bytes < SCRUB_STEP_BYTES_MIN)
        return SCRUB_STEP_BYTES_MIN;
    return bytes < SCRUB_STEP_BYTES_MAX ? (uint32_t)bytes : SCRUB_STEP_BYTES_MAX;
}

uint64_t scrub_pace_wait_us(uint64_t bytes, uint64_t took_us, uint64_t rate_bytes_per_s)
{
    CHECK(rate_bytes_per_s > 0 && rate_bytes_per_s <= UINT64_MAX / US_PER_S);
    uint64_t seconds = bytes / rate_bytes_per_s;
    uint64_t rest_us = bytes % rate_bytes_per_s * US_PER_S / rate_bytes_per_s;

    if (seconds > (UINT64_MAX - rest_us) / US_PER_S)
        return UINT64_MAX - took_us;
    uint64_t due_us = seconds * US_PER_S + rest_us;
    return due_us > took_us ? due_us - took_us : 0;
}

uint64_t scrub_pace_first_ms(uint64_t period_ms)
{
    uint64_t first_ms = period_ms / FIRST_DIVISOR;

    return first_ms < SCRUB_FIRST_MS_MAX ? first_ms : SCRUB_FIRST_MS_MAX;
}

uint64_t scrub_pace_rest_ms(uint64_t period_ms, uint64_t took_ms)
{
    return period_ms > took_ms ? period_ms - took_ms : 0;
}
