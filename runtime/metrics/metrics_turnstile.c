#include "runtime/metrics/metrics_turnstile.h"

#include "runtime/base/check.h"

static const struct turnstile_stats *stats_of(const struct metrics_turnstile_figure *figure)
{
    static const struct turnstile_stats none;
    const struct turnstile_stats *stats = figure->of->read(figure->of->user);

    return stats != NULL ? stats : &none;
}

static double read_refused(void *context)
{
    const struct metrics_turnstile_figure *figure = context;

    return (double)stats_of(figure)->refused[figure->which];
}

/* clang-format off */
/*    kind     tls    name                                figure                                     help */
#define FIGURES(X)                                                                                  \
    X(gauge,   false, "holdfast_connections",             (double)stats->places,                     \
      "Connections that a port has accepted.")                                                       \
    X(gauge,   false, "holdfast_connections_unproven",    (double)stats->unproven,                   \
      "Of them, those without a valid key, HELLO or request yet.")                                   \
    X(gauge,   true,  "holdfast_handshakes_waiting",      (double)stats->waiting,                    \
      "TLS handshakes that wait for their turn.")                                                    \
    X(counter, true,  "holdfast_handshakes_total",        (double)stats->handshakes,                 \
      "TLS handshakes that others began and finished.")                                              \
    X(counter, true,  "holdfast_handshakes_resumed_total", (double)stats->handshakes_resumed,        \
      "Of them, the short ones of clients that came back.")                                          \
    X(counter, true,  "holdfast_handshake_seconds_total", (double)stats->handshake_us / 1e6,         \
      "Time of the event loop that TLS handshakes took, finished or not.")
/* clang-format on */

static double read_figure(void *context)
{
    const struct metrics_turnstile_figure *figure = context;
    const struct turnstile_stats *stats = stats_of(figure);
    uint32_t which = 0;

#define FIGURE_READ(kind, tls, name, value, help)                                                  \
    if (which++ == figure->which)                                                                  \
        return (value);
    FIGURES(FIGURE_READ)
#undef FIGURE_READ
    return 0;
}

void metrics_turnstile_register(struct metrics_turnstile *of, struct metrics *metrics,
                                const char *port, bool tls)
{
    const struct metric_label port_label[] = { { "port", port }, { NULL, NULL } };
    uint32_t which = 0;

#define FIGURE_REGISTER(kind, of_tls, name, value, help)                                           \
    of->figures[which] = (struct metrics_turnstile_figure){ of, which };                           \
    if (tls || !(of_tls))                                                                          \
        metrics_##kind##_callback(metrics, &(struct metric_info){ name, help, port_label },        \
                                  read_figure, &of->figures[which]);                               \
    which++;
    FIGURES(FIGURE_REGISTER)
#undef FIGURE_REGISTER
    CHECK(which == METRICS_TURNSTILE_FIGURES);
    for (enum turnstile_cause i = 0; i < TURNSTILE_CAUSE_COUNT; i++) {
        const struct metric_label labels[] = { { "port", port },
                                               { "reason", turnstile_cause_text(i) },
                                               { NULL, NULL } };

        of->refused[i] = (struct metrics_turnstile_figure){ of, i };
        metrics_counter_callback(metrics,
                                 &(struct metric_info){ "holdfast_connections_refused_total",
                                                        "Connections turned away or put out "
                                                        "before they had proved themselves.",
                                                        labels },
                                 read_refused, &of->refused[i]);
    }
}
