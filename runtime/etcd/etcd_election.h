/*
 * etcd_election: campaigns under a prefix with a leased key, like etcd's concurrency/election: the
 * key with the lowest create revision leads. Being elected is a belief: each transaction in which
 * the leader writes must compare the create revision of its key. `elected` tells key and revision.
 *
 * A candidate may remove the keys of its own earlier lives instead of waiting for their leases.
 * That is safe whether or not they have ended: a process that lost its key fails that compare, and
 * its transactions under way with it. Only keys older than the first of this life are removed, so
 * two live processes of one identity do not depose each other in turns: the younger one leads.
 */
#ifndef RUNTIME_ETCD_ETCD_ELECTION_H
#define RUNTIME_ETCD_ETCD_ELECTION_H

#include "runtime/etcd/etcd.h"

struct etcd_election;

struct etcd_election_options {
    struct slice prefix; /* Ends with '/'; the key is prefix + lease id in hex. Copied. */
    struct slice value;  /* Names the candidate; others read it. Copied. */
    uint64_t ttl_ms;     /* Of the lease; see etcd_lease. */
    /* Borrowed for the call. */
    void (*elected)(void *context, struct slice key, int64_t create_revision);
    /* No longer, or perhaps no longer: stop acting. It campaigns again by itself. */
    void (*lost)(void *context);
    /* The leader changed; kv is NULL when there is none. May be NULL. */
    void (*leader_changed)(void *context, const struct etcd_kv *kv);
    /* Whether `kv`, an older key, is of an earlier life of this candidate. NULL: none is. */
    bool (*is_predecessor)(void *context, const struct etcd_kv *kv);
    void *context;
};

NODISCARD err etcd_election_start(struct etcd *etcd, const struct etcd_election_options *options,
                                  struct etcd_election **ret_election);
/* Resigns: revokes the lease without waiting. No more callbacks; frees it. */
void etcd_election_stop(struct etcd_election *election);

#endif
