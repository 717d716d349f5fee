/*
 * etcd_lease: one lease, granted and kept alive at a third of its TTL. Loss is judged by the local
 * monotonic clock too: a lease counts as held until one TTL after the *sending* of the last request
 * that etcd answered.
 *
 *   GRANTING -> HELD <-> UNCERTAIN -> LOST        UNCERTAIN: no answer for a whole TTL; it may be
 *                 `----------------> LOST         gone. LOST: etcd says so. Start another.
 */
#ifndef RUNTIME_ETCD_ETCD_LEASE_H
#define RUNTIME_ETCD_ETCD_LEASE_H

#include "runtime/etcd/etcd.h"

enum etcd_lease_state {
    ETCD_LEASE_GRANTING,
    ETCD_LEASE_HELD,
    ETCD_LEASE_UNCERTAIN,
    ETCD_LEASE_LOST
};

struct etcd_lease;

struct etcd_lease_options {
    uint64_t ttl_ms; /* 1000 to 600000; etcd counts in seconds, so it is rounded up. */
    /* At every change of state. The lease may be stopped from within. */
    void (*changed)(void *context, struct etcd_lease *lease, enum etcd_lease_state state);
    void *context;
};

/* Grants (again and again until it succeeds), then keeps alive. ERR_INVALID: ttl_ms. */
NODISCARD err etcd_lease_start(struct etcd *etcd, const struct etcd_lease_options *options,
                               struct etcd_lease **ret_lease);
/* Ends keep-alive, no more callbacks; frees it. `revoke` also asks etcd, without waiting, to end
 * the lease now, so that others see it within milliseconds. */
void etcd_lease_stop(struct etcd_lease *lease, bool revoke);

/* 0 while GRANTING. */
int64_t etcd_lease_id(const struct etcd_lease *lease);
/* HELD by the clock at this very moment; cheap, for a check before acting on the lease. */
bool etcd_lease_held(const struct etcd_lease *lease);

#endif
