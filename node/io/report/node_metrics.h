/* node_metrics: the node's own families, beside those of the process (runtime/metrics). */
#ifndef NODE_IO_REPORT_NODE_METRICS_H
#define NODE_IO_REPORT_NODE_METRICS_H

#include "idl/method.h"
#include "node/io/cluster/pulls.h"
#include "node/io/disk/scrub.h"
#include "node/io/disk/space.h"
#include "node/io/view/incidents.h"
#include "node/io/view/shard_view.h"
#include "node/store/node_log.h"
#include "runtime/base/budget.h"
#include "runtime/etcd/etcd.h"
#include "runtime/metrics/metrics.h"

struct node_metrics;

struct node_metrics *node_metrics_new(struct metrics *metrics);
void node_metrics_free(struct node_metrics *metrics);
/* Gauges and counters that are read from the shards' views and the log at each scrape. Once. */
void node_metrics_set_sources(struct node_metrics *metrics, struct shard_views *views,
                              struct node_log *store_log);
/* Counters of what is out of the ordinary, by kind. Once. */
void node_metrics_set_incidents(struct node_metrics *metrics, struct incidents *incidents);
/* Whether etcd went back in time. Once. */
void node_metrics_set_etcd(struct node_metrics *metrics, const struct etcd *etcd);
/* Room on the disks. Once. */
void node_metrics_set_space(struct node_metrics *metrics, const struct space *space);
/* What the scrub has read and found. Once. */
void node_metrics_set_scrub(struct node_metrics *metrics, const struct scrub *scrub);
/* What the pulls of totals have done, and how far they are behind. Once. */
void node_metrics_set_pulls(struct node_metrics *metrics, const struct pulls *pulls);
/* Answers on their way to callers. Once; before node_metrics_answer_unread. */
void node_metrics_set_answers(struct node_metrics *metrics, struct budget *answers);
/* One was refused because the link to its router is full. */
void node_metrics_answer_unread(struct node_metrics *metrics);
/* One was refused because its asker holds its share: of open calls, or of room for answers. */
void node_metrics_asker_throttled(struct node_metrics *metrics, bool places);
/* From here on they read zero. */
void node_metrics_clear_sources(struct node_metrics *metrics);
/* Of calls of one method, since the start. */
struct node_calls {
    const struct method_info *method;
    uint64_t answered[4]; /* By enum reply_status. */
    const struct histogram *latency;
};
/* Every method that was called. */
void node_metrics_visit(const struct node_metrics *metrics,
                        void (*visit)(void *user, const struct node_calls *calls), void *user);
/* In microseconds, from the hand-over of a write to the log until a majority had it. Any thread may
 * observe. */
struct histogram *node_metrics_commits(const struct node_metrics *metrics);
/* One call answered. */
void node_metrics_call(struct node_metrics *metrics, uint32_t method, enum reply_status status,
                       uint64_t latency_us);

#endif
