/*
 * etcd_call: one call from queue to answer: endpoints, deadlines, repeats, and what each failure
 * means. etcd_request.c fills them. For the files of this folder alone.
 */
#ifndef RUNTIME_ETCD_ETCD_CALL_H
#define RUNTIME_ETCD_ETCD_CALL_H

#include "runtime/base/arena.h"
#include "runtime/etcd/etcd_client.h"

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

#endif
