/*
 * service: what routers and coordinators ask of this node, over links: finds the
 * shard of each request, hands it to the worker, and carries the answer back. DESIGN section 9.
 */
#ifndef NODE_IO_PROCESS_SERVICE_H
#define NODE_IO_PROCESS_SERVICE_H

#include "node/core/shard/shard.h"
#include "node/io/process/node_config.h"
#include "node/io/report/node_metrics.h"
#include "node/io/mergeable/mergers.h"
#include "node/io/worker/workers.h"
#include "runtime/link/call.h"

struct service;

struct service_options {
    struct loop *loop;
    struct link_hub *hub;
    const struct log *log;
    struct node_metrics *metrics;
    const struct node_config *config; /* Where it listens, how many calls, and of whom. */
    const struct budget *answers;
    enum link_transport transport;
    uint32_t shard_count;
    /* GetNodeStatus: appends the response's bytes. */
    void (*status)(void *user, struct slice request, struct buf *out);
    /* GetNodeLoad: the same. */
    void (*load)(void *user, struct buf *out);
    /* ListNodeIncidents: the same. False: there is nothing to tell yet, and service_incidents_added
     * will be called when there is. */
    bool (*incidents)(void *user, struct slice request, struct buf *out);
    void *user;
};

NODISCARD err service_new(const struct service_options *options, struct service **ret_service);
/* Open calls are not answered: their callers see the link close. */
void service_free(struct service *service);
uint16_t service_port(const struct service *service);
/* Calls are refused as UNAVAILABLE until workers are set. */
void service_set_workers(struct service *service, struct workers *workers);
/* The same of calls of documents. */
void service_set_mergers(struct service *service, struct mergers *mergers);
/* worker_ops.answer, with the service as `user`; what the reply holds stays the caller's to give
 * back. */
void service_answer(void *service, uint64_t call, const struct shard_reply *reply,
                    struct slice body);
/* Any thread: `incidents` may have something to tell. The service is `user`. */
void service_incidents_added(void *service);
/* Where workers tell which shards have more events, for ListEventNews; the service's own. */
struct event_news *service_event_news(struct service *service);
/* For calls of this node's own to others (early claims): the same call object. */
struct calls *service_calls(struct service *service);

#endif
