/*
 * etcd_client: the client's own state, and what calls and watches report to it: which endpoint does
 * not serve, which revision and which cluster they saw. For the files of this folder alone.
 */
#ifndef RUNTIME_ETCD_ETCD_CLIENT_H
#define RUNTIME_ETCD_ETCD_CLIENT_H

#include "runtime/base/log.h"
#include "runtime/etcd/etcd_http.h"
#include "runtime/etcd/etcd_message.h"
#include "runtime/etcd/etcd_timer.h"
#include "runtime/etcd/etcd_wait.h"

enum { ETCD_URL_SIZE = 256, ETCD_PATH_SIZE = 32 };

/* Who keeps a copy of what etcd holds; told when another etcd was accepted. */
struct etcd_follower {
    void (*restart)(struct etcd_follower *follower);
    struct etcd_follower *next, *previous;
};

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
    struct etcd_follower *followers;
    uint32_t users; /* Watches, mirrors, leases and elections not yet stopped. */
    bool closing;
};

void etcd_follow(struct etcd *etcd, struct etcd_follower *follower);
void etcd_unfollow(struct etcd *etcd, struct etcd_follower *follower);

/* Takes note of an answer's header; reports a rollback. `revision_min`: what a linearizable answer
 * must have reached, 0 for others. */
void etcd_observe(struct etcd *etcd, const struct etcd_header *header, int64_t revision_min);
/* `endpoint` did not serve: the next requests go to another. */
void etcd_rotate(struct etcd *etcd, uint32_t endpoint);

#endif
