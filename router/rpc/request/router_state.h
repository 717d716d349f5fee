/*
 * router_state: what a router works with and what it has at hand, for handlers,
 * which reach the cluster by it. They hold no router otherwise, and never call the dispatcher.
 */
#ifndef ROUTER_RPC_REQUEST_ROUTER_STATE_H
#define ROUTER_RPC_REQUEST_ROUTER_STATE_H

#include "holdfast/v1/admin.pb-c.h"
#include "router/core/admission.h"
#include "runtime/base/caller_share.h"
#include "runtime/base/large_reads.h"
#include "router/core/rate_limit.h"
#include "router/core/session_guard.h"
#include "router/core/settings_table.h"
#include "router/rpc/call/caller.h"
#include "router/rpc/request/metadata_port.h"
#include "router/rpc/servers/servers.h"
#include "runtime/base/budget.h"
#include "runtime/base/log.h"

struct counts;
struct metas;
struct mint_book;
struct request;

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
    /* See ProcessStatus; false: it has not looked yet. NULL: it never looks. */
    bool (*consumers_behind)(void *context, uint32_t *ret_percent);
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
    const struct session_secrets *secrets; /* Of session tokens. NULL: none. */
    const struct settings_table *settings; /* NULL: none is known. */
    uint32_t in_flight_max;
    uint32_t in_flight_key_percent; /* Of it, that one caller may hold; 0: no limit. */
    uint32_t player_rate;           /* Calls a second for one player; 0: no limit. */
    uint32_t register_rate;  /* Registrations of servers a second of one caller; 0: no limit. */
    uint32_t count_age_ms;   /* How old a count of favorites may be that is told again. */
    size_t count_memo_bytes; /* Of counts kept; 0: none is. */
    struct metadata_port metadata_port; /* To endpoints of metadata; `start` NULL: none is asked. */
    uint64_t metadata_age_ms;     /* How old metadata may be that is told without asking again. */
    uint32_t metadata_timeout_ms; /* How long a list waits for it. */
    size_t metadata_memo_bytes;   /* Of metadata kept. */
    struct budget
        *answers;        /* Counts what came for answers, see request_hold. NULL: nothing does. */
    uint64_t trace_seed; /* Where the ids of traces that begin here come from; any number. */
    struct router_self self;
    struct router_observer observer; /* `finished` may be NULL. */
    struct router_load load;
};

struct router {
    struct router_options options;
    struct admission admission;
    struct session_guard guard;
    struct mint_book *mint;
    struct counts *counts;      /* What is known of targets: count_gather.h, */
    struct tops *tops;          /* of top lists: top_gather.h, */
    struct metas *metas;        /* and of what targets are called: metadata_gather.h. */
    uint64_t mints_refused;     /* Calls that would make more than their key may. */
    struct rate_table *players; /* NULL: no limit. */
    struct rate_table *registrations;
    uint64_t players_throttled;
    struct caller_shares *places;   /* Of calls in flight, by caller. */
    uint64_t callers_throttled;     /* Calls refused: their caller holds its share. */
    struct large_reads *large;      /* Answers on their way, by caller. */
    size_t batch_read_bytes;        /* The largest answer to an element of a batch of late, */
    uint64_t batch_read_ms;         /* and when it came: batch_parts.c. */
    uint64_t foreign_incarnations;  /* Requests refused: another key registered what they name. */
    uint64_t random;                /* For traces. */
    struct incident_watch *watches; /* Streams of incidents: admin_watch_incidents.c. */
    uint32_t watch_count;
    struct event_feed *event_feed;
    struct event_subscriber *subscribers; /* Streams of events: event_subscribe.c. */
    uint32_t subscriber_count;
    uint64_t events_streamed, event_gaps;                   /* Told by them. */
    struct settings_wait *settings_waits, *settings_looked; /* Calls of GetSettings that wait. */
    uint32_t settings_wait_count;
    bool streams_ended;
    bool draining; /* New requests are refused as UNAVAILABLE. */
};

#endif
