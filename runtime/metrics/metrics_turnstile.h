/* metrics_turnstile: the families that every port has: its connections, its TLS handshakes, and
 * what it refused, by reason. */
#ifndef RUNTIME_METRICS_METRICS_TURNSTILE_H
#define RUNTIME_METRICS_METRICS_TURNSTILE_H

#include "runtime/base/turnstile.h"
#include "runtime/metrics/metrics.h"

#define METRICS_TURNSTILE_FIGURES 6u

struct metrics_turnstile;

struct metrics_turnstile_figure {
    const struct metrics_turnstile *of;
    uint32_t which;
};

/* Lives as long as the registry is read. */
struct metrics_turnstile {
    /* Of now; NULL: the port is not open, and everything reads zero. */
    const struct turnstile_stats *(*read)(void *user);
    void *user;
    struct metrics_turnstile_figure figures[METRICS_TURNSTILE_FIGURES];
    struct metrics_turnstile_figure refused[TURNSTILE_CAUSE_COUNT];
};

/* `port`: the label: "public", "links", "metrics". `read` and `user` are set. Handshakes only with
 * `tls`. */
void metrics_turnstile_register(struct metrics_turnstile *of, struct metrics *metrics,
                                const char *port, bool tls);

#endif
