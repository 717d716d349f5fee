/* batch_nodes: batches that nodes take whole (method_goes_whole): one message a node. */
#ifndef ROUTER_RPC_FORWARD_BATCH_NODES_H
#define ROUTER_RPC_FORWARD_BATCH_NODES_H

#include "router/rpc/forward/batch_parts.h"

/* Queues what no message was sent for. */
void batch_nodes_ask(struct batch *batch);
void batch_nodes_cancel(struct batch *batch);

#endif
