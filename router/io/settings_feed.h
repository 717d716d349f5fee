/*
 * settings_feed: keeps the router's table of settings as etcd has their definitions, by a watch.
 * While etcd is away, what is known stands.
 */
#ifndef ROUTER_IO_SETTINGS_FEED_H
#define ROUTER_IO_SETTINGS_FEED_H

#include "router/core/settings_table.h"
#include "router/rpc/router.h"
#include "runtime/base/log.h"
#include "runtime/etcd/etcd.h"

struct settings_feed;

struct settings_feed_options {
    struct etcd *etcd;
    const char *cluster; /* A valid name. */
    const struct log *log;
    struct router *router; /* It is told what changes; zeros until it is there. */
};

NODISCARD err settings_feed_new(const struct settings_feed_options *options,
                                struct settings_feed **ret_feed);
/* NULL is allowed. */
void settings_feed_free(struct settings_feed *feed);
/* Lives, and changes, with the feed. */
const struct settings_table *settings_feed_table(const struct settings_feed *feed);

#endif
