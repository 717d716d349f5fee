#include "runtime/base/refused_log.h"

#include <stdio.h>

#include "runtime/base/check.h"

static void tell(struct refused_log *refused, enum turnstile_cause which, uint64_t now_ms)
{
    struct refused_cause *cause = &refused->causes[which];
    char address[ADDRESS_TEXT_SIZE];

    address_print(&cause->address, address);
    log_event(refused->log, LOG_WARN, "connection.refused", LOG_S("port", refused->port),
              LOG_S("cause", turnstile_cause_text(which)), LOG_N("count", cause->untold),
              LOG_S("address", address), LOG_S("why", cause->why));
    cause->told_ms = now_ms > 0 ? now_ms : 1;
    cause->untold = 0;
}

static bool is_due(const struct refused_cause *cause, uint64_t now_ms)
{
    return cause->untold > 0 &&
           (cause->told_ms == 0 || now_ms >= cause->told_ms + REFUSED_LOG_PERIOD_MS);
}

void refused_log_add(struct refused_log *refused, enum turnstile_cause which,
                     const struct address *address, const char *why, uint64_t now_ms)
{
    struct refused_cause *cause = &refused->causes[which];

    CHECK(which < TURNSTILE_CAUSE_COUNT);
    cause->untold++;
    cause->address = *address;
    (void)snprintf(cause->why, sizeof cause->why, "%s", why);
    if (is_due(cause, now_ms))
        tell(refused, which, now_ms);
}

void refused_log_tick(struct refused_log *refused, uint64_t now_ms)
{
    for (enum turnstile_cause which = 0; which < TURNSTILE_CAUSE_COUNT; which++) {
        if (is_due(&refused->causes[which], now_ms))
            tell(refused, which, now_ms);
    }
}
