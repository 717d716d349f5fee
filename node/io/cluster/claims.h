/*
 * claims: tells the elected coordinator about owners that this node has lost, so that it need not
 * wait for their leases (early claim, DESIGN section 4). Safe whatever is reported: promises fence.
 */
#ifndef NODE_IO_CLUSTER_CLAIMS_H
#define NODE_IO_CLUSTER_CLAIMS_H

#include "node/io/cluster/peers.h"
#include "node/io/cluster/registry.h"
#include "node/io/disk/space.h"
#include "node/io/view/shard_view.h"
#include "runtime/link/call.h"

struct claims;

struct claims_options {
    struct loop *loop;
    struct link_hub *hub;
    const struct log *log;
    const struct registry *registry;
    const struct peers *peers;
    struct shard_views *views;
    const struct space *space; /* While it is short, this node asks to be relieved of its shards. */
    uint64_t self;
    uint64_t closed_ms; /* Report an owner that has been closed for so long. */
    uint64_t silent_ms; /* ... or silent for so long. */
};

struct claims *claims_new(const struct claims_options *options);
void claims_free(struct claims *claims);

#endif
