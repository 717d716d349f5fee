/* server_answers: what callers of `servers` are told, now or later. */
#ifndef ROUTER_RPC_SERVERS_SERVER_ANSWERS_H
#define ROUTER_RPC_SERVERS_SERVER_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/err.h"
#include "runtime/cluster/incarnation.h"

/* ---- registration ---- */
enum servers_register_outcome {
    SERVERS_REGISTERED,
    SERVERS_TOO_MANY,        /* The cluster has as many as it may; nothing was done. */
    SERVERS_NOT_REGISTERED,  /* etcd could not be reached; nothing was done. */
    SERVERS_REGISTER_UNKNOWN /* It may be registered, and will then lapse by itself. */
};

typedef void servers_registered(void *user, enum servers_register_outcome outcome,
                                struct incarnation incarnation, uint32_t ttl_ms);

/* ---- the end of a registration ---- */
/* ERR_OK: marked for expiry, or gone already. Else etcd's error (etcd.h). */
typedef void servers_unregistered(void *user, err e);

/* ---- whose a registration is ---- */
enum servers_claim {
    SERVERS_CLAIM_PENDING, /* `done` will tell. */
    SERVERS_CLAIM_OWN,     /* That key registered it, or it belongs to no key. */
    SERVERS_CLAIM_FOREIGN, /* Another key did. */
    SERVERS_CLAIM_GONE,    /* There is no such registration (any more). */
    SERVERS_CLAIM_NEVER,   /* Nor was there ever one: etcd has not come that far. */
    SERVERS_CLAIM_UNSURE   /* etcd did not answer. */
};

typedef void servers_claimed(void *user, enum servers_claim claim);

/* ---- renewal ---- */
enum servers_state {
    SERVERS_PENDING, /* `done` will tell. */
    SERVERS_ALIVE,
    SERVERS_GONE,  /* Expired, or never registered: its sessions are lost. */
    SERVERS_UNSURE /* etcd did not answer. */
};

/* One who waits for a renewal; the caller's memory. */
struct servers_wait {
    void (*done)(void *user, enum servers_state state); /* Never PENDING. */
    void *user;
    struct servers_wait *next;
    struct servers_wait *previous; /* NULL: not waiting. */
};

struct servers_stats {
    uint64_t registered, reattached, keep_alives, failures;
    uint32_t remembered;
};

#endif
