#include "client/cli/console/clock.h"

#include <time.h>

static uint64_t read_ms(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t monotonic_ms(void)
{
    return read_ms(CLOCK_MONOTONIC);
}

uint64_t wall_ms(void)
{
    return read_ms(CLOCK_REALTIME);
}

void sleep_ms(uint64_t ms)
{
    const struct timespec pause = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000L };

    (void)nanosleep(&pause, NULL);
}

const char *utc_text(uint64_t unix_ms, char ret_text[UTC_TEXT_BYTES])
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm parts;

    ret_text[0] = 0;
    if (gmtime_r(&seconds, &parts) != NULL)
        (void)strftime(ret_text, UTC_TEXT_BYTES, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return ret_text;
}
