/*
 * registry: the coordinator's side of etcd: a mirror of all the cluster's keys, the election, and
 * the core's transactions. Turns etcd's answers into the core's events and decides nothing.
 */
#ifndef COORDINATOR_IO_REGISTRY_H
#define COORDINATOR_IO_REGISTRY_H

#include "coordinator/core/coord.h"
#include "runtime/loop/loop.h"

struct registry;

struct registry_options {
    struct loop *loop; /* All borrowed; texts are copied. */
    const struct log *log;
    const char *cluster;
    const char *const *endpoints;
    uint32_t endpoint_count;
    const char *ca_file; /* NULL: none. */
    const char *cert_file;
    const char *key_file;
    uint64_t lease_ttl_ms;
    /* now_ms is for the receiver to fill. Never called from within a call into registry. */
    void (*event)(void *user, struct coord_event *event);
    /* The record that the core goes by; NULL: it knows none. */
    const struct cluster_record *(*cluster_of)(void *user);
    void *user;
};

/* Connects and mirrors at once, and goes on trying for ever. */
NODISCARD err registry_new(const struct registry_options *options, struct registry **ret_registry);
/* Ends the campaign, and the leadership, at once. Run the loop until registry_has_resigned (or
 * for as long as etcd deserves), then free it. */
void registry_resign(struct registry *registry);
/* etcd has no election key of this process. */
bool registry_has_resigned(const struct registry *registry);
/* Keep running the loop for a moment. NULL is allowed. */
void registry_free(struct registry *registry);

/* Begins to campaign under this name and address. Once. */
void registry_campaign(struct registry *registry, const struct coordinator_record *self);
/* Carries it out; COORD_TXN_DONE follows, always. Everything is copied. */
void registry_txn(struct registry *registry, const struct coord_txn *txn);

bool registry_is_synced(const struct registry *registry);
/* Somebody leads. */
bool registry_has_leader(const struct registry *registry);

#endif
