/*
 * pulls: makes the calls of a node's puller (node/core/top/puller.h), about each second: to shards
 * here by their worker, to others by the owner that the recorded map names. What it learns of how
 * far each home has come goes to the shards' views. Beside these, one call a second compares some
 * counts of a shard here (node/core/top/drift.h). On the main loop's thread; nothing runs inside a
 * step.
 */
#ifndef NODE_IO_CLUSTER_PULLS_H
#define NODE_IO_CLUSTER_PULLS_H

#include "node/core/top/drift.h"
#include "node/core/top/puller.h"
#include "node/io/cluster/peers.h"
#include "node/io/cluster/registry.h"
#include "node/io/worker/workers.h"
#include "runtime/link/call.h"

struct pulls;

struct pulls_options {
    struct loop *loop;
    struct registry *registry;
    struct peers *peers;
    struct calls *calls;
    uint64_t self;
};

struct pulls *pulls_new(const struct pulls_options *options);
/* NULL is allowed. After the calls object. */
void pulls_free(struct pulls *pulls);
/* Begins. `workers` NULL: stops for good. */
void pulls_set_workers(struct pulls *pulls, struct workers *workers, struct shard_views *views);
/* worker_ops.answer: false when the call is none of these. */
bool pulls_answer(struct pulls *pulls, uint64_t call, const struct shard_reply *reply,
                  struct slice body);

struct pulls_stats {
    struct puller_stats puller;
    uint64_t behind_ms; /* puller_behind_ms, now. */
    struct drift_stats drift;
};
/* All zero before it begins. */
void pulls_stats_get(const struct pulls *pulls, struct pulls_stats *ret_stats);

#endif
