/* etcd_build: the JSON bodies of requests to etcd's v3 gateway. Pure; appends to `out`. */
#ifndef RUNTIME_ETCD_ETCD_BUILD_H
#define RUNTIME_ETCD_ETCD_BUILD_H

#include "runtime/base/buf.h"
#include "runtime/etcd/etcd_message.h"

void etcd_build_range(const struct etcd_range *range, struct buf *out);
void etcd_build_txn(const struct etcd_txn *txn, struct buf *out);
void etcd_build_lease_grant(int64_t lease_id, int64_t ttl_s, struct buf *out);
/* For keep-alive and revoke. */
void etcd_build_lease_id(int64_t lease_id, struct buf *out);
void etcd_build_watch(struct slice key, bool prefix, int64_t start_revision, struct buf *out);

#endif
