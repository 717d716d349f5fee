/*
 * etcd_watch: a stream of changes to a key or prefix, in revision order, each once. Reconnects by
 * itself (also to another endpoint) and resumes behind the last revision seen.
 */
#ifndef RUNTIME_ETCD_ETCD_WATCH_H
#define RUNTIME_ETCD_ETCD_WATCH_H

#include "runtime/etcd/etcd.h"

struct etcd_watch;

struct etcd_watch_options {
    struct slice key; /* Copied. */
    bool prefix;
    int64_t start_revision; /* First one wanted: one above that of the range it follows. */
    /* Events of one answer; borrowed for the call. `revision` is the last event's. */
    void (*events)(void *context, const struct etcd_event *events, size_t count, int64_t revision);
    /* WATCH_RESET: revisions before compact_revision are gone. The watch has ended: stop it, range
     * again, start another. */
    void (*reset)(void *context, int64_t compact_revision);
    /* The stream is (again) established; may be NULL. */
    void (*established)(void *context);
    void *context;
};

NODISCARD err etcd_watch_start(struct etcd *etcd, const struct etcd_watch_options *options,
                               struct etcd_watch **ret_watch);
/* Drops the stream and opens it again, elsewhere if it can, not before `revision`. */
void etcd_watch_reconnect(struct etcd_watch *watch, int64_t revision);
/* No more callbacks; frees it. May be called from within its callbacks. */
void etcd_watch_stop(struct etcd_watch *watch);

#endif
