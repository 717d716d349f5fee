/*
 * router: the router's dispatcher: admits a request, finds who answers its method, and counts how
 * it ended. Everything it uses is passed in, so that tests bring nodes and clocks of their own.
 * On the loop's thread only.
 *
 *   request -> router_dispatch -> forward.c (mutations and reads: caller -> node)
 *                              -> batch.c (Batch methods: an element each as above)
 *                              -> inventory_trace_item.c (one call after another, shard by shard)
 *                              -> session_*.c, admin_*.c (the router itself;
 * admin_watch_incidents.c a stream)
 */
#ifndef ROUTER_RPC_ROUTER_H
#define ROUTER_RPC_ROUTER_H

#include "router/rpc/request/request.h"
#include "router/rpc/request/router_state.h"

void router_init(struct router *router, const struct router_options *options);
/* When every request has ended. */
void router_deinit(struct router *router);

/* Whether a call of the method would be refused whatever it says, so that it need not be read: then
 * it has been counted as refused, and is to be answered THROTTLED. */
bool router_is_full(struct router *router, const struct method_info *method,
                    uint32_t *ret_retry_after_ms);
/* Whether every call would be refused now. */
bool router_takes_none(const struct router *router);
/* Takes the request; see request.h for its life. The door's fields must be filled. */
void router_dispatch(struct router *router, struct request *request);
/* The request's caller has gone: ends a request that was not answered inside router_dispatch. */
void router_cancel(struct router *router, struct request *request);
/* A stream of the request has room again. */
void router_writable(struct router *router, struct request *request);
/* Settings changed (options.settings): of that name, or, NULL, of any. */
void router_settings_changed(struct router *router, const char *name);
/* The router stops: calls that wait for settings are answered with what stands, streams end as
 * UNAVAILABLE, and so do those that are asked for from now on. */
void router_end_streams(struct router *router);
/* Calls in flight, streams included. */
uint32_t router_in_flight(const struct router *router);

#endif
