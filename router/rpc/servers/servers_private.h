/* servers_private: the inside that servers.c (renewal) and server_registration.c share. */
#ifndef ROUTER_RPC_SERVERS_SERVERS_PRIVATE_H
#define ROUTER_RPC_SERVERS_SERVERS_PRIVATE_H

#include "runtime/base/caller_share.h"
#include "router/rpc/servers/server_answers.h"
#include "runtime/base/log.h"
#include "runtime/base/log_gate.h"
#include "runtime/cluster/cluster_record.h"
#include "runtime/etcd/etcd.h"
#include "runtime/loop/loop.h"

#define SERVERS_BUCKETS 4096u

/* One incarnation as this router remembers it. */
struct server_entry {
    struct servers *servers;
    struct incarnation incarnation;
    int64_t lease_id;    /* 0: to be read from etcd. */
    uint64_t renewed_ms; /* Sending time of the last keep-alive that etcd confirmed; 0: none. */
    uint64_t asked_ms;   /* Last call of servers_renew. */
    uint64_t sent_ms;    /* Of the keep-alive in flight. */
    uint64_t owner;      /* The key that registered it here, as a number; 0: another router's. */
    uint32_t rounds;     /* Steps of the renewal in flight. */
    bool busy;           /* A renewal is in flight. */
    struct server_record record; /* Its name, where known; while re-attaching, what to write. */
    int64_t known_revision;
    struct etcd_call *call;    /* NULL when it cannot be cancelled. */
    struct servers_wait waits; /* Head of a circular list. */
    struct server_entry *next; /* In the bucket. */
};

/* A registration or its end in flight. */
struct server_task {
    struct servers *servers;
    struct server_task *next;
    struct server_task *previous;
    struct etcd_call *call; /* In flight; one at a time. */
    struct server_record record;
    struct incarnation incarnation;
    uint64_t generation;
    uint64_t give_up_ms;
    int64_t known_revision;
    uint32_t rounds;
    servers_registered *registered;
    servers_unregistered *unregistered;
    servers_claimed *claimed; /* record.key: the claimant's. */
    uint64_t claimant; /* In servers->claims, if it claims: 0 stands for all without a key. */
    bool claims;
    void *user;
};

struct servers {
    struct loop *loop;
    struct etcd *etcd;
    const char *cluster;
    uint32_t servers_max;
    int64_t counted; /* gs/known, when it was counted last; it takes etcd long where it is many. */
    uint64_t counted_ms;
    const struct log *log;
    struct loop_timer sweep;
    struct log_gate unregistered; /* One line a minute of registrations that failed. */
    bool failing;                 /* etcd's last answer to a renewal was none. */
    struct servers_stats stats;
    struct server_entry *buckets[SERVERS_BUCKETS];
    struct caller_shares *keys;   /* How many entries each has that registered here. */
    struct caller_shares *claims; /* And how many questions to etcd whose one is. */
    struct server_task tasks;     /* Head of a circular list. */
};

/* The key as a number; 0: anyone. */
uint64_t servers_owner_of(const char *key);
struct server_task *server_task_new(struct servers *servers, uint64_t timeout_ms);
void server_task_free(struct server_task *task);
/* NULL: not remembered here. */
struct server_entry *servers_find(struct servers *servers, struct incarnation incarnation);
/* Remembers what etcd says of it, but not by whose lease it lives. */
void servers_learn(struct servers *servers, struct incarnation incarnation,
                   const struct server_record *record);

/* Remembers the registration, by whose lease this incarnation lives from now on. */
void servers_remember(struct servers *servers, struct incarnation incarnation,
                      const struct server_record *record);
void servers_forget(struct servers *servers, struct incarnation incarnation);

#endif
