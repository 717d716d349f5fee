/*
 * handlers: who answers what. Each function takes a request that was admitted and ends it, now or
 * later. One file each, named after the service and the method; router.c has the table.
 */
#ifndef ROUTER_RPC_REQUEST_HANDLERS_H
#define ROUTER_RPC_REQUEST_HANDLERS_H

#include "router/rpc/request/request.h"
#include "router/rpc/request/router_state.h"

/* Mutations and reads: to the owner of the entity's shard. */
void forward_handle(struct request *request);
/* Lists that filter: the same, again and again until the page is full. */
void filled_page_handle(struct request *request);
/* ListFavorites: with the metadata of its targets, if it is asked for. */
void listed_targets_handle(struct request *request);
/* To the owner of the shard that the request names. */
void forward_shard_handle(struct request *request);
/* Batch methods: an element each as above. */
void batch_handle(struct request *request);

typedef void handle_fn(struct request *request);
/* Ends the request, or calls `handle`, now or later: who names an incarnation must be the key that
 * registered it. */
void server_owner_then(struct request *request, handle_fn *handle);
/* For `cancel` of a request that registers a server or ends a registration: what was begun lapses
 * by itself, as after a crash. */
void server_call_cancel(struct request *request);
/* As mint_check (mint_guard.h), of the request's key. */
NODISCARD err mint_allow(struct request *request, Holdfast__V1__ErrorDetail *ret_detail);
/* Likewise ends it or calls `handle`: what its key may make in a day is counted first. */
void mint_then(struct request *request, handle_fn *handle);

/* The router's own methods: OWN_<route>(text) is `text` for those routes, else nothing. */
#define OWN_ROUTER(...) __VA_ARGS__
#define OWN_STREAM(...) __VA_ARGS__
#define OWN_GATHER(...) __VA_ARGS__
#define OWN_SCATTER(...)
#define OWN_MUTATION(...)
#define OWN_READ(...)
#define OWN_SHARD(...)
#define OWN_SHARD_WRITE(...)
#define OWN_MEMBER_READ(...)
#define OWN_MEMBER_WRITE(...)
#define OWN_SHARD_VIEW(...)
#define OWN_NODE(...)
#define OWN_OWNER(...)
#define OWN_COORDINATOR(...)

#define HANDLER_EXTERN(number, enumerator, package, service, method, name, route, ...)             \
    OWN_##route(void service##_##name##_handle(struct request *request);)
METHOD_TABLE(HANDLER_EXTERN)
#undef HANDLER_EXTERN

/* Ends every stream as UNAVAILABLE: the router stops. */
void admin_watch_incidents_end_all(struct router *router);
void event_subscribe_end_all(struct router *router);
/* Calls that wait for settings: others stand by that name, or, of NULL, may by any. */
void definition_get_settings_look(struct router *router, const char *name);
/* Those calls are answered with what stands: the router stops. */
void definition_get_settings_end_all(struct router *router);

#endif
