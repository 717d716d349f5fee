/*
 * server_feed: tells which game servers live, from etcd (gs/, docs/sessions.md), to `living`. While
 * etcd is away, what was known stays.
 */
#ifndef NODE_IO_CLUSTER_SERVER_FEED_H
#define NODE_IO_CLUSTER_SERVER_FEED_H

#include "node/core/document/living.h"
#include "runtime/base/log.h"
#include "runtime/etcd/etcd.h"

struct server_feed;

struct server_feed_options {
    struct etcd *etcd;
    const char *cluster; /* A valid name. */
    const struct log *log;
    struct living *living; /* Borrowed; its clock is the wall clock. */
};

NODISCARD err server_feed_new(const struct server_feed_options *options,
                              struct server_feed **ret_feed);
/* NULL is allowed. */
void server_feed_free(struct server_feed *feed);

#endif
