/*
 * token_feed: the secret of session tokens (session_token.h), as this router follows it in etcd.
 * The first router of a cluster makes it, once: it is put only if there is none. While etcd is
 * away, and while it is read again, the secret that was known stays in use.
 */
#ifndef ROUTER_IO_TOKEN_FEED_H
#define ROUTER_IO_TOKEN_FEED_H

#include "runtime/base/log.h"
#include "runtime/cluster/session_token.h"
#include "runtime/etcd/etcd.h"
#include "runtime/loop/loop.h"

struct token_feed;

struct token_feed_options {
    struct loop *loop;
    struct etcd *etcd;
    const char *cluster; /* A valid name. */
    const struct log *log;
};

NODISCARD err token_feed_new(const struct token_feed_options *options,
                             struct token_feed **ret_feed);
/* NULL is allowed. */
void token_feed_free(struct token_feed *feed);

/* Whether a secret is known. */
bool token_feed_known(const struct token_feed *feed);
/* Lives, and changes, with the feed. */
const struct session_secrets *token_feed_secrets(const struct token_feed *feed);

#endif
