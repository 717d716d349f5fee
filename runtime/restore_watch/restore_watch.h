/*
 * restore_watch: while a process refuses an etcd that is older than it knows (etcd_rolled_back),
 * looks at the cluster's record there. An operator who accepts the restored etcd raises the
 * cluster's generation above every one that a node knows: then, and only then, the process takes
 * etcd as it is (docs/etcd-restore.md, DESIGN section 4). At other times it reads etcd now and
 * then: lagging members answer keep-alives and watches, so only such a read tells how far etcd is.
 */
#ifndef RUNTIME_RESTORE_WATCH_RESTORE_WATCH_H
#define RUNTIME_RESTORE_WATCH_RESTORE_WATCH_H

#include "runtime/base/log.h"
#include "runtime/etcd/etcd.h"
#include "runtime/loop/loop.h"

#define RESTORE_WATCH_MS    250u
#define RESTORE_WATCH_QUIET 8u /* Times that: how often while there is nothing to refuse. */

struct restore_watch;

struct restore_watch_options {
    struct loop *loop; /* All borrowed. */
    const struct log *log;
    struct etcd *etcd;
    const char *cluster;
    uint64_t generation; /* The highest that an earlier life saw; 0: it remembers nothing. */
    /* Of the cluster's record that is known; NULL: none is. */
    const char *(*cluster_id)(void *user);
    /* The cluster's record as the older etcd has it, each time it is looked at. May be NULL. */
    void (*restored)(void *user, const struct etcd_kv *kv);
    /* The generation has risen, so this etcd was accepted, even if its age had not been noticed
     * here: etcd_rollback_accept was called, and mirrors begin again after this. */
    void (*accepted)(void *user, uint64_t generation);
    void *user;
};

struct restore_watch *restore_watch_new(const struct restore_watch_options *options);
/* NULL is allowed. */
void restore_watch_free(struct restore_watch *watch);

#endif
