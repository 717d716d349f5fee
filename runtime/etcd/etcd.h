/*
 * etcd: client for etcd's v3 JSON gateway over libcurl, on one libuv loop. Asynchronous: every
 * callback comes on the loop's thread, never from inside the call that started the work. Nothing
 * here may be called from another thread. DESIGN sections 2 and 4.
 *
 * Outcomes. ERR_OK carries etcd's answer. Errors are of two sorts (err_retry):
 *   not done:  ERR_UNAVAILABLE no endpoint reached, or none could serve, nothing was carried out;
 *              ERR_INVALID etcd refused the request as malformed; ERR_NOT_FOUND no such lease, or a
 *              compacted revision; ERR_EXISTS lease id taken; ERR_FULL etcd is overloaded;
 *              ERR_PERMISSION
 *   unknown:   ERR_TIMEOUT no answer in time; ERR_DISCONNECTED connection lost, or etcd could not
 *              tell. The call may take effect, even later.
 * Reads have no effect, so for them every error means only "no answer".
 */
#ifndef RUNTIME_ETCD_ETCD_H
#define RUNTIME_ETCD_ETCD_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "runtime/base/err.h"
#include "runtime/base/log.h"
#include "runtime/etcd/etcd_message.h"
#include "runtime/etcd/etcd_wait.h"

struct etcd;

struct etcd_options {
    uv_loop_t *loop;              /* Borrowed; must outlive the client. */
    const char *const *endpoints; /* "http://host:port" or "https://..."; copied, as all texts. */
    uint32_t endpoint_count;      /* 1 to ETCD_ENDPOINTS_MAX. */
    const char *ca_file;          /* PEM files for https; NULL where not wanted. */
    const char *cert_file;
    const char *key_file;
    uint64_t timeout_ms;   /* Deadline of a call given 0; 0: ETCD_TIMEOUT_MS_DEFAULT. */
    const struct log *log; /* May be NULL. */
    /* What the process remembers from before (DESIGN section 4); 0 when it knows nothing. */
    uint64_t cluster_id_known;
    int64_t revision_known;
    /* Called once per rollback, before the answer that shows it is delivered. Calls go on working;
     * mirrors deliver nothing until etcd_rollback_accept. May be NULL. */
    void (*rolled_back)(void *context, const struct etcd_rollback *rollback);
    void *context;
};

/* ERR_INVALID: an option is out of bounds; ERR_IO: curl could not start. */
NODISCARD err etcd_new(const struct etcd_options *options, struct etcd **ret_etcd);
/* Cancels every call without its callback. Stop watches, mirrors, leases and elections first
 * (CHECK). The memory goes once the loop has run the close callbacks: keep running the loop. */
void etcd_free(struct etcd *etcd);

/* Highest revision and the cluster id seen, to be persisted. 0 before the first answer. */
int64_t etcd_revision_seen(const struct etcd *etcd);
uint64_t etcd_cluster_id_seen(const struct etcd *etcd);
/* True between a rollback and its acceptance. */
bool etcd_rolled_back(const struct etcd *etcd);
/* Forgets what was known and takes etcd as it is now; mirrors start over with a reset. */
void etcd_rollback_accept(struct etcd *etcd);

/* Calls without an answer yet. To stop cleanly, run the loop until it is 0, bounded in time, before
 * etcd_free: revocations and resignations are calls too. */
uint32_t etcd_calls_pending(const struct etcd *etcd);

/* All below: bytes and `wait` are copied. ERR_FULL: too many calls wait; the callback will not
 * come. */

/* Linearizable. */
NODISCARD err etcd_range(struct etcd *etcd, const struct etcd_range *range, etcd_range_done done,
                         const struct etcd_wait *wait);
/* `txn` stays the caller's, who may free it at once. */
NODISCARD err etcd_txn(struct etcd *etcd, const struct etcd_txn *txn, etcd_txn_done done,
                       const struct etcd_wait *wait);
/* etcd_txn of one unconditional put. */
NODISCARD err etcd_put(struct etcd *etcd, const struct etcd_kv *kv, etcd_txn_done done,
                       const struct etcd_wait *wait);

/*
 * Sends the same transaction again and again, with pauses that grow to 1 s, until etcd answers
 * definitely, or wait->timeout_ms is over (0: until cancelled), then ERR_TIMEOUT if any of them may
 * have reached etcd, else ERR_UNAVAILABLE.
 *
 * The transaction must be written so that a repeat recognises itself, since an attempt without an
 * answer may have committed, or may commit later:
 *   - compare a revision that the transaction itself changes (mod_revision of the key it puts, or
 *     create_revision == 0), so that it can succeed once at most, whichever attempt is first;
 *   - on the ELSE branch get that key, and take it for success if it holds the very value put
 *     (with something unique in it: an epoch, a lease id, an op id).
 */
NODISCARD err etcd_txn_until_definite(struct etcd *etcd, const struct etcd_txn *txn,
                                      etcd_txn_done done, const struct etcd_wait *wait);

/* lease_id 0: etcd chooses. ttl_s from 1. */
NODISCARD err etcd_lease_grant(struct etcd *etcd, int64_t lease_id, int64_t ttl_s,
                               etcd_lease_done done, const struct etcd_wait *wait);
/* ERR_NOT_FOUND: the lease is gone. */
NODISCARD err etcd_lease_keep_alive(struct etcd *etcd, int64_t lease_id, etcd_lease_done done,
                                    const struct etcd_wait *wait);
/* ERR_NOT_FOUND: was gone already. */
NODISCARD err etcd_lease_revoke(struct etcd *etcd, int64_t lease_id, uint64_t timeout_ms,
                                etcd_lease_done done, void *context);
/* An etcd_lease_done for revokes that no caller waits for: the lease lapses by itself. */
void etcd_lease_ignored(void *context, err e, const struct etcd_lease_result *result);
/* Of that endpoint, 0 to etcd_endpoint_count - 1, and no other: asked once. */
NODISCARD err etcd_status(struct etcd *etcd, uint32_t endpoint, etcd_status_done done,
                          const struct etcd_wait *wait);

uint32_t etcd_endpoint_count(const struct etcd *etcd);
/* Its URL as it was given. */
const char *etcd_endpoint(const struct etcd *etcd, uint32_t endpoint);

#endif
