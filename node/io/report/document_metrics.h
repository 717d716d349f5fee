/* document_metrics: what a node's replicas of the mergeable class hold and how they follow each
 * other. */
#ifndef NODE_IO_REPORT_DOCUMENT_METRICS_H
#define NODE_IO_REPORT_DOCUMENT_METRICS_H

#include "node/io/mergeable/mergers.h"
#include "runtime/metrics/metrics.h"

struct document_metrics;

/* `mergers` is borrowed until clear. */
struct document_metrics *document_metrics_new(struct metrics *metrics, struct mergers *mergers);
/* From here on they read zero. NULL is allowed. */
void document_metrics_clear(struct document_metrics *metrics);
/* After the registry's last scrape. NULL is allowed. */
void document_metrics_free(struct document_metrics *metrics);

#endif
