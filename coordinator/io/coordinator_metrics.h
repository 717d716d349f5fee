/* coordinator_metrics: the core's counters and gauges in /metrics, as holdfast_coordinator_*. */
#ifndef COORDINATOR_IO_COORDINATOR_METRICS_H
#define COORDINATOR_IO_COORDINATOR_METRICS_H

#include "coordinator/core/coord.h"
#include "runtime/loop/loop.h"
#include "runtime/metrics/metrics.h"

struct coordinator_metrics;

/* All borrowed; free it after the last scrape. */
struct coordinator_metrics *coordinator_metrics_new(struct metrics *metrics,
                                                    const struct coord *core, struct loop *loop);
void coordinator_metrics_free(struct coordinator_metrics *metrics);

#endif
