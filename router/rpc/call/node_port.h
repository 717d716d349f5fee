/*
 * node_port: how the RPC layer reaches nodes. router/io stands behind it with nng links; tests
 * with nodes of their own making.
 */
#ifndef ROUTER_RPC_CALL_NODE_PORT_H
#define ROUTER_RPC_CALL_NODE_PORT_H

#include "runtime/link/call.h"

#define NODE_PORT_COORDINATOR 0u /* No node's replica id: the elected coordinator. */

struct node_port {
    /* As call_start (runtime/link/call.h), to the node of that replica id, or to the coordinator.
     * ERR_UNAVAILABLE: no link to it is ready. */
    err (*start)(void *context, uint64_t replica_id, const struct call_request *request,
                 uint64_t *ret_call);
    /* As call_cancel. */
    void (*cancel)(void *context, uint64_t call);
    /* Whether requests to that node may name who asked (runtime/cluster/caller_name.h); NULL: yes.
     */
    bool (*takes_callers)(void *context, uint64_t replica_id);
    /* Whether a link to that node is ready; NULL: it is tried. */
    bool (*reaches)(void *context, uint64_t replica_id);
    void *context;
};

#endif
