/* etcd_wait: a call on its way to etcd, and how its caller waits for the answer. Outcomes: etcd.h.
 */
#ifndef RUNTIME_ETCD_ETCD_WAIT_H
#define RUNTIME_ETCD_ETCD_WAIT_H

#include <stdint.h>

#include "runtime/base/err.h"
#include "runtime/etcd/etcd_message.h"

enum {
    ETCD_ENDPOINTS_MAX = 16,
    ETCD_CALLS_MAX = 64,        /* On the wire at once; watches not counted. */
    ETCD_QUEUE_MAX = 4096,      /* Waiting behind them; above it ERR_FULL. */
    ETCD_ANSWER_MAX = 67108864, /* Bytes of one answer, 64 MiB. */
    ETCD_TIMEOUT_MS_DEFAULT = 5000,
    ETCD_TIMEOUT_MS_MAX = 600000
};

struct etcd_call; /* One pending call; gone once its callback ran or it was cancelled. */

/* `result` is NULL unless e is ERR_OK, and valid during the callback only. */
typedef void (*etcd_range_done)(void *context, err e, const struct etcd_range_result *result);
typedef void (*etcd_txn_done)(void *context, err e, const struct etcd_txn_result *result);
typedef void (*etcd_lease_done)(void *context, err e, const struct etcd_lease_result *result);
typedef void (*etcd_status_done)(void *context, err e, const struct etcd_status_result *result);

/* How a caller waits for an answer. */
struct etcd_wait {
    uint64_t timeout_ms;         /* 0: the client's. */
    void *context;               /* Of the callback. */
    struct etcd_call **ret_call; /* For etcd_call_cancel; may be NULL. */
};

/* Forgets the call: no callback. It may still take effect. */
void etcd_call_cancel(struct etcd_call *call);

#endif
