/*
 * refused_log: what ports refuse, told in one line a minute and cause, with how many it were since
 * and the latest address. The first one is told at once. Pure: time is told.
 */
#ifndef RUNTIME_BASE_REFUSED_LOG_H
#define RUNTIME_BASE_REFUSED_LOG_H

#include "runtime/base/log.h"
#include "runtime/base/turnstile.h"

#define REFUSED_LOG_PERIOD_MS 60000u
#define REFUSED_LOG_WHY_SIZE  120u

struct refused_cause {
    uint64_t told_ms; /* 0: never. */
    uint64_t untold;
    struct address address;
    char why[REFUSED_LOG_WHY_SIZE];
};

struct refused_log {
    const struct log *log; /* May be NULL: then nothing is told. */
    const char *port;      /* "public", "links", "metrics". */
    struct refused_cause causes[TURNSTILE_CAUSE_COUNT];
};

/* One more. `why` may be "". */
void refused_log_add(struct refused_log *refused, enum turnstile_cause cause,
                     const struct address *address, const char *why, uint64_t now_ms);
/* Tells what has waited for its minute; call it every few seconds. */
void refused_log_tick(struct refused_log *refused, uint64_t now_ms);

#endif
