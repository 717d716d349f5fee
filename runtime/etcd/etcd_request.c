/* The public calls: each builds its body and submits it. */
#include "runtime/etcd/etcd.h"

#include <stdlib.h>

#include "runtime/base/check.h"
#include "runtime/etcd/etcd_build.h"
#include "runtime/etcd/etcd_call.h"

err etcd_range(struct etcd *etcd, const struct etcd_range *range, etcd_range_done done,
               const struct etcd_wait *wait)
{
    struct etcd_call *call = etcd_call_new(etcd, ETCD_CALL_RANGE, "/v3/kv/range", wait->timeout_ms);

    call->reads_only = true;
    call->linearizable = range->revision == 0;
    call->done.range = done;
    call->context = wait->context;
    etcd_build_range(range, &call->request.body);
    return etcd_call_submit(call, wait->ret_call);
}

static struct etcd_call *txn_call(struct etcd *etcd, const struct etcd_txn *txn, etcd_txn_done done,
                                  const struct etcd_wait *wait)
{
    struct etcd_call *call = etcd_call_new(etcd, ETCD_CALL_TXN, "/v3/kv/txn", wait->timeout_ms);

    call->linearizable = true;
    call->done.txn = done;
    call->context = wait->context;
    etcd_build_txn(txn, &call->request.body);
    return call;
}

err etcd_txn(struct etcd *etcd, const struct etcd_txn *txn, etcd_txn_done done,
             const struct etcd_wait *wait)
{
    return etcd_call_submit(txn_call(etcd, txn, done, wait), wait->ret_call);
}

err etcd_txn_until_definite(struct etcd *etcd, const struct etcd_txn *txn, etcd_txn_done done,
                            const struct etcd_wait *wait)
{
    struct etcd_call *call = txn_call(etcd, txn, done, wait);

    call->until_definite = true;
    if (wait->timeout_ms == 0)
        call->deadline_ms = 0;
    return etcd_call_submit(call, wait->ret_call);
}

err etcd_put(struct etcd *etcd, const struct etcd_kv *kv, etcd_txn_done done,
             const struct etcd_wait *wait)
{
    struct etcd_txn *txn = etcd_txn_new();

    etcd_txn_put(txn, ETCD_THEN, kv->key, kv->value, kv->lease);
    err e = etcd_txn(etcd, txn, done, wait);
    etcd_txn_free(txn);
    return e;
}

static struct etcd_call *lease_call(struct etcd *etcd, const char *path, etcd_lease_done done,
                                    const struct etcd_wait *wait)
{
    struct etcd_call *call = etcd_call_new(etcd, ETCD_CALL_LEASE, path, wait->timeout_ms);

    call->done.lease = done;
    call->context = wait->context;
    return call;
}

err etcd_lease_grant(struct etcd *etcd, int64_t lease_id, int64_t ttl_s, etcd_lease_done done,
                     const struct etcd_wait *wait)
{
    struct etcd_call *call = lease_call(etcd, "/v3/lease/grant", done, wait);

    CHECK(ttl_s > 0 && lease_id >= 0);
    etcd_build_lease_grant(lease_id, ttl_s, &call->request.body);
    return etcd_call_submit(call, wait->ret_call);
}

err etcd_lease_keep_alive(struct etcd *etcd, int64_t lease_id, etcd_lease_done done,
                          const struct etcd_wait *wait)
{
    struct etcd_call *call = lease_call(etcd, "/v3/lease/keepalive", done, wait);

    call->reads_only = true; /* Repeating it does no harm, so another endpoint may be asked. */
    call->keep_alive = true;
    etcd_build_lease_id(lease_id, &call->request.body);
    return etcd_call_submit(call, wait->ret_call);
}

err etcd_lease_revoke(struct etcd *etcd, int64_t lease_id, uint64_t timeout_ms,
                      etcd_lease_done done, void *context)
{
    struct etcd_call *call = lease_call(etcd, "/v3/lease/revoke", done,
                                        &(struct etcd_wait){ timeout_ms, context, NULL });

    etcd_build_lease_id(lease_id, &call->request.body);
    return etcd_call_submit(call, NULL);
}

void etcd_lease_ignored(void *context, err e, const struct etcd_lease_result *result)
{
    (void)context;
    (void)e;
    (void)result;
}

err etcd_status(struct etcd *etcd, uint32_t endpoint, etcd_status_done done,
                const struct etcd_wait *wait)
{
    struct etcd_call *call =
        etcd_call_new(etcd, ETCD_CALL_STATUS, "/v3/maintenance/status", wait->timeout_ms);

    CHECK(endpoint < etcd->endpoint_count);
    call->reads_only = true;
    call->pinned = true;
    call->endpoint = endpoint;
    call->done.status = done;
    call->context = wait->context;
    buf_append(&call->request.body, "{}", 2);
    return etcd_call_submit(call, wait->ret_call);
}
