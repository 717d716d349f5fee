/*
 * servers: the registrations of game servers in etcd, as the routers keep them (DESIGN section 5).
 * On the loop's thread only.
 *
 * Registration, safe at every lost answer:
 *   1. grant a lease; a lost one lapses by itself.
 *   2. put gs/sequence: the revision of that put is the incarnation's. A lost answer skips a
 *      number; nothing else. Once a second the transaction counts gs/known: too many are refused.
 *   3. one transaction, repeated until etcd answers definitely: if gs/known/<inc> is absent, put
 *      gs/live/<inc> (leased) and gs/known/<inc>; else read it: ours if it names our lease.
 * A registration whose answer never reached the game server lapses with its lease and is expired
 * by the coordinator like any other. Between 2 and 3 a later registration may become visible first;
 * a coordinator that then declares everything below it expired makes the first heartbeat of this
 * one fail with SERVER_EXPIRED: it registers again, and nothing is lost.
 *
 * Renewal: keeps the lease alive at most once a second per incarnation. If the lease is gone, reads
 * known and live in one transaction. Absent or EXPIRING: the server is gone for good. Live by
 * another lease: keeps that one alive. Else re-attaches: new lease, then a transaction that
 * compares known's mod revision and puts live and known, both naming the new lease (so that a
 * repeat recognises itself). The coordinator's mark compares that live is absent, so one of them
 * wins.
 */
#ifndef ROUTER_RPC_SERVERS_SERVERS_H
#define ROUTER_RPC_SERVERS_SERVERS_H

#include "router/rpc/servers/server_answers.h"
#include "runtime/base/log.h"
#include "runtime/cluster/cluster_record.h"
#include "runtime/etcd/etcd.h"
#include "runtime/loop/loop.h"

#define SERVERS_KNOWN_MAX       65536u /* Incarnations remembered. */
#define SERVERS_KEY_MAX         8192u  /* Of one API key, registered here and not forgotten. */
#define SERVERS_KEEP_ALIVE_MS   1000u  /* Not more often than this per incarnation. */
#define SERVERS_FORGET_MS       60000u /* Without a renewal for so long: forgotten here. */
#define SERVERS_ETCD_TIMEOUT_MS 1000u  /* Of each call to etcd in a renewal. */
#define SERVERS_RENEW_EVERY_MS  2000u
#define SERVERS_TTL_MS_DEFAULT  10000u

struct servers;

struct servers_options {
    struct loop *loop;
    struct etcd *etcd;
    const char *cluster;  /* Name; must outlive it. */
    uint32_t servers_max; /* Of the cluster; 0: CLUSTER_SERVERS_REGISTERED_MAX. */
    const struct log *log;
};

struct servers *servers_new(const struct servers_options *options);
/* No callbacks any more. NULL is allowed. */
void servers_free(struct servers *servers);

/* ---- registration ---- */
struct servers_newcomer {
    const struct server_record *record; /* name and ttl_ms, valid (server_record_validate). */
    uint64_t generation;                /* The cluster's. */
    uint64_t timeout_ms;
};

/* Whether one more may be registered here for that API key; empty or NULL: for anyone. */
bool servers_has_room(const struct servers *servers, const char *key);

/* `done` comes exactly once, never from inside. ERR_FULL: etcd's queue is full. */
NODISCARD err servers_register(struct servers *servers, const struct servers_newcomer *newcomer,
                               servers_registered *done, void *user);

/* ---- the end of a registration ---- */
NODISCARD err servers_unregister(struct servers *servers, struct incarnation incarnation,
                                 uint64_t timeout_ms, servers_unregistered *done, void *user);

/* Forgets the registration, or its end, that was started with this user: no `done`; what it does
 * in etcd stays unknown. Allowed when there is none. */
void servers_cancel(struct servers *servers, const void *user);

/* ---- whose a registration is ---- */
struct servers_claimant {
    struct incarnation incarnation;
    const char *key; /* The caller's; empty: any registration is its own. */
    uint64_t timeout_ms;
    uint64_t generation; /* The cluster's; 0: not known. */
};

#define SERVERS_CLAIMS_MAX 256u /* Questions of one key to etcd at once; more are UNSURE. */

/* SERVERS_CLAIM_PENDING: `done` comes exactly once, never from inside. Else it is not called. */
enum servers_claim servers_claim(struct servers *servers, const struct servers_claimant *claimant,
                                 servers_claimed *done, void *user);

/* ---- renewal ---- */
/* PENDING: `wait` stays with it until done or servers_wait_cancel. Else done is not called. While
 * etcd fails, it answers UNSURE at once and goes on trying behind the scenes. */
enum servers_state servers_renew(struct servers *servers, struct incarnation incarnation,
                                 struct servers_wait *wait);
/* Allowed when it is not waiting. */
void servers_wait_cancel(struct servers_wait *wait);

/* The name under which it registered, here or with another router that renewed through this one;
 * valid until the loop goes on. Empty: not remembered here. Asks etcd for nothing. */
const char *servers_name(struct servers *servers, struct incarnation incarnation);

struct servers_stats servers_stats(const struct servers *servers);

#endif
