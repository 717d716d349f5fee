/*
 * router_metrics: what the router counts (names in docs/metrics), and the slow log.
 */
#ifndef ROUTER_IO_ROUTER_METRICS_H
#define ROUTER_IO_ROUTER_METRICS_H

#include "router/io/node_links.h"
#include "router/io/public_door.h"
#include "router/rpc/events/consumer_watch.h"
#include "router/rpc/router.h"
#include "runtime/metrics/metrics.h"

struct router_metrics;

struct router_metrics_options {
    struct metrics *metrics;
    const struct log *log;
    const struct router *router;
    uint64_t slow_ms; /* Requests slower than this are logged. */
    const char *name; /* The router's. */
};

struct router_metrics *router_metrics_new(const struct router_metrics_options *options);
void router_metrics_free(struct router_metrics *metrics);
/* What is read at each scrape. Each may be NULL: reads as zero. */
void router_metrics_watch_door(struct router_metrics *metrics, const struct public_door *door,
                               const struct gatekeeper *gatekeeper);
void router_metrics_watch_players(struct router_metrics *metrics, const struct player_gate *players,
                                  const struct player_keys *keys);
void router_metrics_watch_links(struct router_metrics *metrics, const struct node_links *links);
void router_metrics_watch_consumers(struct router_metrics *metrics,
                                    const struct consumer_watch *consumers);

/* struct router_observer's `finished`, with a router_metrics as its context. */
void router_metrics_finished(void *context, const struct request *request,
                             Holdfast__V1__ErrorCode code, uint64_t latency_us);

/* struct router_load's `fill`, likewise. */
void router_metrics_load(void *context, struct arena *arena, Holdfast__V1__RouterLoad *load);

#endif
