/* node_metrics: the node's own families, beside those of the process (runtime/metrics). */
#ifndef NODE_IO_NODE_METRICS_H
#define NODE_IO_NODE_METRICS_H

#include "node/core/shard.h"
#include "runtime/metrics/metrics.h"

struct node_metrics;
struct worker;

struct node_metrics *node_metrics_new(struct metrics *metrics);
void node_metrics_free(struct node_metrics *metrics);
/* Gauges and counters that are read from the worker's shards at each scrape. */
void node_metrics_set_worker(struct node_metrics *metrics, const struct worker *worker);
/* From here on they read zero. */
void node_metrics_clear_worker(struct node_metrics *metrics);
/* One call answered. */
void node_metrics_call(struct node_metrics *metrics, uint32_t method, enum reply_status status,
                       uint64_t latency_us);

#endif
