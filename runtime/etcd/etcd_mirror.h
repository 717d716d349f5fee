/*
 * etcd_mirror: keeps the caller's copy of a prefix right: a range, a watch from its revision, and
 * the range again every 30 s (and after a compaction) to repair what a watch may have missed
 * (DESIGN section 2). A range is read in pages, all of one revision. Changes come in order per key,
 * each revision of a key at most once.
 */
#ifndef RUNTIME_ETCD_ETCD_MIRROR_H
#define RUNTIME_ETCD_ETCD_MIRROR_H

#include "runtime/etcd/etcd.h"

enum { ETCD_MIRROR_KEYS_MAX = 65536, ETCD_MIRROR_PAGE_KEYS = 2048, ETCD_MIRROR_REFRESH_MS = 30000 };

struct etcd_mirror;

struct etcd_mirror_options {
    struct slice prefix; /* Copied. */
    uint64_t refresh_ms; /* 0: ETCD_MIRROR_REFRESH_MS. */
    /* More keys than this are never synced: above what may be below the prefix. 0:
     * ETCD_MIRROR_KEYS_MAX. */
    size_t keys_max;
    /* A key is new or changed; borrowed for the call. */
    void (*put)(void *context, const struct etcd_kv *kv);
    /* A key is gone. `revision` is the delete's, or that of the range which no longer had it. */
    void (*deleted)(void *context, struct slice key, int64_t revision);
    /* The copy is complete as of `revision`: after the first range, and after each later one. */
    void (*synced)(void *context, int64_t revision);
    /* A rollback was accepted: forget everything; puts and synced follow. May be NULL. */
    void (*reset)(void *context);
    void *context;
};

NODISCARD err etcd_mirror_start(struct etcd *etcd, const struct etcd_mirror_options *options,
                                struct etcd_mirror **ret_mirror);
/* No more callbacks; frees it. May be called from within its callbacks. */
void etcd_mirror_stop(struct etcd_mirror *mirror);
/* Ranges now instead of at the next refresh. */
void etcd_mirror_refresh(struct etcd_mirror *mirror);

#endif
