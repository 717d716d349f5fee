/*
 * deliveries: batches from the shards of this node to shards anywhere (DESIGN section 7): finds who
 * owns the destination by the recorded map, hands the batch to a worker here or to a peer, and
 * brings the answer back. Tries once: the shard that sent it decides when to send it again.
 * On the main loop's thread; nothing here runs inside a step of a shard.
 */
#ifndef NODE_IO_CLUSTER_DELIVERIES_H
#define NODE_IO_CLUSTER_DELIVERIES_H

#include "node/io/cluster/peers.h"
#include "node/io/cluster/pulls.h"
#include "node/io/cluster/registry.h"
#include "node/io/worker/workers.h"
#include "runtime/link/call.h"

#define DELIVERIES_MAX 16384u

struct deliveries;

struct deliveries_options {
    struct loop *loop;
    struct registry *registry;
    struct peers *peers;
    struct calls *calls; /* Which the peers' links feed. */
    uint64_t self;
};

struct deliveries *deliveries_new(const struct deliveries_options *options);
/* NULL is allowed. After the calls object. */
void deliveries_free(struct deliveries *deliveries);
/* With the calls of pulls.h, which go the same ways. NULL: it stops. */
void deliveries_set_workers(struct deliveries *deliveries, struct workers *workers,
                            struct shard_views *views);

/* worker_ops.deliver: from shard `from`. The request is copied. Beyond DELIVERIES_MAX at once it is
 * dropped: the shard sends it again. */
void deliveries_send(struct deliveries *deliveries, uint32_t from,
                     const struct shard_delivery *delivery, struct slice request);
/* worker_ops.answer: false when the call is none of these. */
bool deliveries_answer(struct deliveries *deliveries, uint64_t call,
                       const struct shard_reply *reply, struct slice body);
/* What the pulls did; of NULL, NULL. */
const struct pulls *deliveries_pulls(const struct deliveries *deliveries);

#endif
