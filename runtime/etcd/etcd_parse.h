/*
 * etcd_parse: reads what etcd's v3 gateway answers. Pure and defensive: any bytes give a result or
 * ERR_CORRUPT. Absent fields are zero, as proto3 JSON leaves them out. Everything a result
 * points to lies in the arena.
 */
#ifndef RUNTIME_ETCD_ETCD_PARSE_H
#define RUNTIME_ETCD_ETCD_PARSE_H

#include "runtime/base/arena.h"
#include "runtime/base/buf.h"
#include "runtime/etcd/etcd_message.h"

NODISCARD err etcd_parse_range(struct slice json, struct arena *arena,
                               struct etcd_range_result *ret_result);
NODISCARD err etcd_parse_txn(struct slice json, struct arena *arena,
                             struct etcd_txn_result *ret_result);
/* Grant, keep-alive (one object of its stream) and revoke. */
NODISCARD err etcd_parse_lease(struct slice json, struct etcd_lease_result *ret_result);
NODISCARD err etcd_parse_status(struct slice json, struct etcd_status_result *ret_result);
/* One object of the stream. */
NODISCARD err etcd_parse_watch(struct slice json, struct arena *arena,
                               struct etcd_watch_result *ret_result);

struct etcd_failure {
    int64_t grpc_code;
    char text[128];
};

/* The body of an answer that is no success, or an error object within a stream. */
NODISCARD err etcd_parse_failure(struct slice json, struct etcd_failure *ret_failure);

/* What a failure means (see etcd.h). `reads_only`: the call cannot have had an effect. */
err etcd_failure_err(const struct etcd_failure *failure, bool reads_only);

/* Splits a stream of JSON objects. Zeroed is a valid start; each byte is looked at once. */
struct etcd_splitter {
    size_t scanned;
    size_t depth;
    bool in_string;
    bool escaped;
};

/* True when `bytes` begins with a whole object: *ret_object is that, *ret_consumed how much to drop
 * (also blanks around it) before the next call with a splitter that is zeroed again (it is).
 * Bytes that are no JSON object set *ret_bad. */
bool etcd_splitter_step(struct etcd_splitter *splitter, struct slice bytes,
                        struct slice *ret_object, size_t *ret_consumed, bool *ret_bad);

#endif
