/*
 * key_feed: keeps the router's table of API keys as etcd has it, by a watch: a key that is revoked
 * is refused as soon as etcd tells. While etcd is away the keys known go on to work.
 */
#ifndef ROUTER_IO_KEY_FEED_H
#define ROUTER_IO_KEY_FEED_H

#include "router/core/key_table.h"
#include "runtime/base/log.h"
#include "runtime/etcd/etcd.h"

struct key_feed;

struct key_feed_options {
    struct etcd *etcd;
    const char *cluster; /* Name. */
    uint64_t seed;       /* As key_table_new. */
    const struct log *log;
};

NODISCARD err key_feed_new(const struct key_feed_options *options, struct key_feed **ret_feed);
/* NULL is allowed. */
void key_feed_free(struct key_feed *feed);

/* Whether all keys were read once: before that, a key that is not in the table may be good. */
bool key_feed_complete(const struct key_feed *feed);
struct key_table *key_feed_table(const struct key_feed *feed);

#endif
