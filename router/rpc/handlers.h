/*
 * handlers: who answers what. Each function takes a request that was admitted and ends it, now or
 * later. One file each, named after the service and the method; dispatch.c has the table.
 */
#ifndef ROUTER_RPC_HANDLERS_H
#define ROUTER_RPC_HANDLERS_H

#include "router/rpc/router.h"

/* Mutations and reads: to the owner of the entity's shard. */
void forward_handle(struct request *request);
/* Lists that filter: the same, again and again until the page is full. */
void filled_page_handle(struct request *request);
/* To the owner of the shard that the request names. */
void forward_shard_handle(struct request *request);
/* Batch methods: an element each as above. */
void batch_handle(struct request *request);

/* From shard to shard, as the item went. */
void inventory_trace_handle(struct request *request);
void session_register_server_handle(struct request *request);
void session_unregister_server_handle(struct request *request);
void session_renew_sessions_handle(struct request *request);
void admin_accept_etcd_restore_handle(struct request *request);
void admin_get_cluster_handle(struct request *request);
void admin_get_load_handle(struct request *request);
void admin_list_shards_handle(struct request *request);
void admin_list_servers_handle(struct request *request);
void admin_list_processes_handle(struct request *request);
void admin_list_events_handle(struct request *request);
void backup_prepare_restore_handle(struct request *request);
void admin_watch_events_handle(struct request *request);
/* Ends every stream of events as UNAVAILABLE: the router stops. */
void admin_watch_events_end_all(struct router *router);
void admin_set_policy_handle(struct request *request);
void admin_move_shard_handle(struct request *request);
void admin_change_node_handle(struct request *request);
void admin_rebalance_handle(struct request *request);
void transaction_read_handle(struct request *request);

#endif
