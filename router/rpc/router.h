/*
 * router: the router's dispatcher: admits a request, finds who answers its method, and counts how
 * it ended. Everything it uses is passed in, so that tests bring nodes and clocks of their own.
 * On the loop's thread only.
 *
 *   request -> router_dispatch -> forward.c (mutations and reads: caller -> node)
 *                              -> batch.c (Batch methods: an element each as above)
 *                              -> inventory_trace.c (one call after another, shard by shard)
 *                              -> session_*.c, admin_*.c (the router itself; admin_watch_events.c a
 *                                 stream)
 */
#ifndef ROUTER_RPC_ROUTER_H
#define ROUTER_RPC_ROUTER_H

#include "holdfast/v1/admin.pb-c.h"
#include "router/rpc/caller.h"
#include "router/rpc/request.h"
#include "router/rpc/servers.h"
#include "runtime/base/log.h"

#define ROUTER_ANSWER_MARGIN_MS 25u   /* At most; and never above 5 % of a request's time. */
#define ROUTER_STATUS_MS_MAX    2000u /* How long administration waits for a node's status. */
#define ROUTER_RENEW_MS_MAX     1500u /* How long a heartbeat waits for shards and for etcd. */

/* Told of every request that ends; code UNSPECIFIED is success. */
struct router_observer {
    void (*finished)(void *context, const struct request *request, Holdfast__V1__ErrorCode code,
                     uint64_t latency_us);
    void *context;
};

/* Fills in what the router counts of itself; its memory comes from the arena. NULL: nothing. */
struct router_load {
    void (*fill)(void *context, struct arena *arena, Holdfast__V1__RouterLoad *load);
    void *context;
};

/* What the process around the dispatcher knows of itself. */
struct router_self {
    const char *name, *version; /* NULL: not known. */
    /* When its certificates expire, in milliseconds since 1970; 0: it has none. NULL: none. */
    uint64_t (*cluster_certificate_ms)(void *context);
    uint64_t (*public_certificate_ms)(void *context);
    void *context;
};

struct router_options {
    struct loop *loop;
    const struct log *log;
    const char *cluster; /* Name; must outlive the router, as all here. */
    const struct shard_map *map;
    struct caller *caller;
    struct node_port port;
    struct etcd *etcd;
    struct servers *servers;
    uint32_t in_flight_max;
    uint64_t trace_seed; /* Where the ids of traces that begin here come from; any number. */
    struct router_self self;
    struct router_observer observer; /* `finished` may be NULL. */
    struct router_load load;
};

struct router {
    struct router_options options;
    struct admission admission;
    uint64_t random;             /* For traces. */
    struct buf scratch;          /* For one encoding at a time, within one callback. */
    struct event_watch *watches; /* Streams of events: admin_watch_events.c. */
    uint32_t watch_count;
    bool streams_ended;
    bool draining; /* New requests are refused as UNAVAILABLE. */
};

void router_init(struct router *router, const struct router_options *options);
/* When every request has ended. */
void router_deinit(struct router *router);

/* Whether a call of the method would be refused whatever it says, so that nobody need read it: then
 * it has been counted as refused, and is to be answered THROTTLED. */
bool router_is_full(struct router *router, const struct method_info *method,
                    uint32_t *ret_retry_after_ms);
/* Takes the request; see request.h for its life. The door's fields must be filled. */
void router_dispatch(struct router *router, struct request *request);
/* The request's caller has gone: ends a request that was not answered inside router_dispatch. */
void router_cancel(struct router *router, struct request *request);
/* A stream of the request has room again. */
void router_writable(struct router *router, struct request *request);
/* The router stops: streams end as UNAVAILABLE, and so do those that are asked for from now on. */
void router_end_streams(struct router *router);
/* Internal to request.c. */
void router_finish(struct router *router, struct request *request, Holdfast__V1__ErrorCode code);
/* Calls in flight, streams included. */
uint32_t router_in_flight(const struct router *router);

#endif
