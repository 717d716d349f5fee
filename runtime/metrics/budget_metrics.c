#include "runtime/metrics/budget_metrics.h"

static double read_held(void *context)
{
    const struct budget *budget = context;

    return (double)budget_held(budget);
}

static double read_max(void *context)
{
    const struct budget *budget = context;

    return (double)budget->bytes_max;
}

static double read_refused(void *context)
{
    const struct budget *budget = context;

    return (double)budget_refused(budget);
}

void budget_metrics_register(struct metrics *metrics, struct budget *budget,
                             const struct budget_metric_names *names)
{
    const struct metric_label labels[] = { { "reason", "budget" }, { NULL, NULL } };

    metrics_gauge_callback(
        metrics,
        &(struct metric_info){ names->held, "Bytes of answers on their way to callers.", NULL },
        read_held, budget);
    metrics_gauge_callback(
        metrics,
        &(struct metric_info){ names->max, "What they may come to: answers_size_max.", NULL },
        read_max, budget);
    metrics_counter_callback(metrics,
                             &(struct metric_info){ names->refused, names->refused_help, labels },
                             read_refused, budget);
}
