/*
 * batch_parts: one request of a Batch method on its way, for batch.c and batch_nodes.h. Its
 * elements are asked for one by one; those of a method that nodes take whole (method_goes_whole)
 * are sent in one message a node first, and one by one only where a node did not answer for them.
 */
#ifndef ROUTER_RPC_FORWARD_BATCH_PARTS_H
#define ROUTER_RPC_FORWARD_BATCH_PARTS_H

#include "router/core/scatter.h"
#include "router/rpc/forward/forward.h"
#include "runtime/cluster/cluster_record.h"

struct batch;

/* One element on its way. */
struct batch_part {
    struct caller_call call;
    struct batch *batch;
    const ProtobufCMessage *message;
    bool prepared; /* `call` is filled in. */
    bool open;
};

/* One message to a node. */
struct batch_node {
    struct batch *batch;
    uint64_t replica_id;
    uint64_t call;  /* 0: none is open. */
    uint32_t count; /* Elements in it. */
    uint32_t *places;
};

struct batch {
    struct request *request;
    uint32_t count;
    uint32_t *queue; /* Places of elements to be asked for one by one, in this order. */
    uint32_t queued;
    uint32_t next; /* In the queue: the first that was not asked for yet. */
    uint32_t open; /* Calls and messages to nodes. */
    bool reads;
    bool full;      /* Of reads: one had no room. The others are not asked for. */
    size_t largest; /* Of the answers that came; 0: none did. */
    struct batch_part *parts;
    struct scatter_outcome *outcomes;
    size_t bytes; /* Of the answers that came. */
    uint32_t node_count;
    struct batch_node *nodes; /* Up to CLUSTER_NODES_MAX. */
};

/* Its call is filled in. False: it failed. */
bool batch_prepare(struct batch_part *part);
void batch_fail(struct batch_part *part, const Holdfast__V1__ErrorDetail *detail);
/* An element's answer, or the failure that stands in its place since it has no room. */
void batch_keep(struct batch_part *part, struct slice body);
void batch_queue(struct batch *batch, uint32_t place);
/* Asks for what is queued, and answers once nothing is open. `at_once`: the request has just come.
 */
void batch_go_on(struct batch *batch, bool at_once);

#endif
