/* etcd_private: what the files of this folder share about the client. Not for others. */
#ifndef RUNTIME_ETCD_ETCD_PRIVATE_H
#define RUNTIME_ETCD_ETCD_PRIVATE_H

#include "runtime/base/arena.h"
#include "runtime/etcd/etcd.h"
#include "runtime/etcd/etcd_http.h"
#include "runtime/etcd/etcd_timer.h"

enum { ETCD_URL_SIZE = 256, ETCD_PATH_SIZE = 32 };

struct etcd_mirror;
struct etcd_watch;

struct etcd {
    uv_loop_t *loop;
    const struct log *log;
    struct etcd_http *http;
    struct etcd_timers timers;
    char endpoints[ETCD_ENDPOINTS_MAX][ETCD_URL_SIZE];
    uint32_t endpoint_count;
    uint32_t endpoint; /* Where the next request goes. */
    uint64_t timeout_ms;
    uint64_t cluster_id;
    int64_t revision;
    bool rolled_back;
    void (*on_rollback)(void *context, const struct etcd_rollback *rollback);
    void *context;
    struct etcd_call *queue_first, *queue_last; /* Waiting for their turn. */
    struct etcd_call *calls;                    /* On the wire or pausing. */
    uint32_t queued;
    uint32_t active;
    struct etcd_mirror *mirrors;
    uint32_t users; /* Watches, mirrors, leases and elections not yet stopped. */
    bool closing;
};

enum etcd_call_kind { ETCD_CALL_RANGE, ETCD_CALL_TXN, ETCD_CALL_LEASE, ETCD_CALL_STATUS };
enum etcd_call_state {
    ETCD_CALL_QUEUED,
    ETCD_CALL_ACTIVE,
    ETCD_CALL_PAUSED,
    ETCD_CALL_ANSWERED /* In no list; its callback is about to run. */
};

struct etcd_call {
    struct etcd *etcd;
    struct etcd_http_request request;
    struct etcd_timer timer;
    enum etcd_call_kind kind;
    enum etcd_call_state state;
    const char *path;
    bool reads_only;
    bool pinned;       /* To `endpoint`; no other will do. */
    bool linearizable; /* Its answer may not be older than what was seen when it was sent. */
    bool until_definite;
    bool keep_alive;       /* A TTL of zero means that the lease is gone. */
    bool cancelled;        /* While ANSWERED. */
    bool may_have_reached; /* An attempt went out that was not answered. */
    err failed;            /* To be delivered when the timer fires. */
    uint64_t deadline_ms;  /* 0: none. */
    uint64_t pause_ms;     /* Before the next attempt. */
    int64_t revision_at_send;
    uint32_t endpoint;
    uint32_t endpoints_tried;
    uint32_t attempts;
    union {
        etcd_range_done range;
        etcd_txn_done txn;
        etcd_lease_done lease;
        etcd_status_done status;
    } done;
    void *context;
    struct arena arena;
    union {
        struct etcd_range_result range;
        struct etcd_txn_result txn;
        struct etcd_lease_result lease;
        struct etcd_status_result status;
    } result;
    struct etcd_call *next, *previous;
};

/* A call with an empty body, to be filled and then submitted. */
struct etcd_call *etcd_call_new(struct etcd *etcd, enum etcd_call_kind kind, const char *path,
                                uint64_t timeout_ms);
/* Queues it; frees it on error. */
NODISCARD err etcd_call_submit(struct etcd_call *call, struct etcd_call **ret_call);

/* Takes note of an answer's header; reports a rollback. `revision_min`: what a linearizable answer
 * must have reached, 0 for others. */
void etcd_observe(struct etcd *etcd, const struct etcd_header *header, int64_t revision_min);
/* `endpoint` did not serve: the next requests go to another. */
void etcd_rotate(struct etcd *etcd, uint32_t endpoint);
/* Drops the stream and opens it again, elsewhere if it can, not before `revision`. */
void etcd_watch_reconnect(struct etcd_watch *watch, int64_t revision);
/* The mirror's part of etcd_rollback_accept. */
void etcd_mirror_restart(struct etcd_mirror *mirror);
struct etcd_mirror *etcd_mirror_next(struct etcd_mirror *mirror);

#endif
