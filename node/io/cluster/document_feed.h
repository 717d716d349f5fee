/*
 * document_feed: what the mergeable class follows in etcd: definitions, and the secret that
 * contexts are signed with. The first node of a cluster makes the secret, once: it is put only if
 * there is none. While etcd is away, what was known stays in use. A secret that is deleted is put
 * back.
 */
#ifndef NODE_IO_CLUSTER_DOCUMENT_FEED_H
#define NODE_IO_CLUSTER_DOCUMENT_FEED_H

#include "runtime/base/log.h"
#include "runtime/etcd/etcd.h"
#include "runtime/loop/loop.h"

#define DOCUMENT_SECRET_BYTES 32u

struct document_feed;

struct document_feed_options {
    struct loop *loop;
    struct etcd *etcd;
    const char *cluster; /* A valid name. */
    const struct log *log;
    /* A version of a definition; borrowed. */
    void (*definition)(void *user, struct slice version);
    /* All of them are told again. */
    void (*reset)(void *user);
    /* All that there are were told. */
    void (*complete)(void *user);
    void (*secret)(void *user, const uint8_t secret[DOCUMENT_SECRET_BYTES]);
    void *user;
};

NODISCARD err document_feed_new(const struct document_feed_options *options,
                                struct document_feed **ret_feed);
/* NULL is allowed. */
void document_feed_free(struct document_feed *feed);

#endif
