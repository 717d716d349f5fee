/*
 * state_metrics: where each shard of this node stands, a series a shard, and how its database does.
 * Shards are numbered, so their labels are bounded by the cluster's own limit of shards.
 */
#ifndef NODE_IO_REPORT_STATE_METRICS_H
#define NODE_IO_REPORT_STATE_METRICS_H

#include "node/io/view/shard_view.h"
#include "node/store/db.h"
#include "runtime/metrics/metrics.h"

struct state_metrics;

/* Registers all families; once a registry. Views and database are borrowed until clear. */
struct state_metrics *state_metrics_new(struct metrics *metrics, struct shard_views *views,
                                        struct db *db);
/* From here on they read zero. NULL is allowed. */
void state_metrics_clear(struct state_metrics *metrics);
/* After the registry's last scrape. NULL is allowed. */
void state_metrics_free(struct state_metrics *metrics);

#endif
