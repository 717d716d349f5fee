/* budget_metrics: what a budget of bytes (runtime/base/budget.h) holds, may hold and has refused.
 */
#ifndef RUNTIME_METRICS_BUDGET_METRICS_H
#define RUNTIME_METRICS_BUDGET_METRICS_H

#include "runtime/base/budget.h"
#include "runtime/metrics/metrics.h"

/* Names and texts are static. The counter has the label reason="budget"; others of its family, with
 * other reasons, are the caller's. */
struct budget_metric_names {
    const char *held;
    const char *max;
    const char *refused, *refused_help;
};

/* Both must outlive the scrapes. */
void budget_metrics_register(struct metrics *metrics, struct budget *budget,
                             const struct budget_metric_names *names);

#endif
