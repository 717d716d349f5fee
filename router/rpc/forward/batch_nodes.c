/* Batches that nodes take whole: one message to each node, with the elements of all shards for
 * which it is asked. */
#include <string.h>

#include "idl/error_code.h"
#include "idl/error_tell.h"
#include "router/rpc/forward/batch_nodes.h"
#include "router/rpc/call/said_refusal.h"
#include "runtime/base/check.h"
#include "runtime/cluster/wire.h"
#include "runtime/codec/proto_codec.h"

#define TAG_REQUESTS    0x0au /* Field 1, length-delimited. */
#define LENGTH_SIZE_MAX 6u    /* With the tag. */

/* ---- what came ---- */

/* An element that this node did not answer: its shard's other members are asked for it alone. */
static void ask_alone(const struct batch_node *node, uint32_t place, bool unknown)
{
    struct batch_part *part = &node->batch->parts[place];

    part->call.asked = node->replica_id;
    part->call.asked_unknown = unknown && !node->batch->reads;
    batch_queue(node->batch, place);
}

static void ask_all_alone(const struct batch_node *node, uint32_t from, bool unknown)
{
    for (uint32_t i = from; i < node->count; i++)
        ask_alone(node, node->places[i], unknown);
}

static void take_refusal(const struct batch_node *node, uint32_t place, struct slice bytes)
{
    struct batch *batch = node->batch;
    const Holdfast__Internal__V1__Refusal *refusal = said_refusal(bytes, batch->request->arena);

    if (refusal == NULL || said_refusal_passes(refusal) || refusal->code == CODE(OUTCOME_UNKNOWN)) {
        ask_alone(node, place, refusal == NULL || refusal->code == CODE(OUTCOME_UNKNOWN));
        return;
    }
    const Holdfast__V1__ErrorDetail detail = error_tell(refusal, batch->request->arena);

    batch_fail(&batch->parts[place], &detail);
}

static void take_results(const struct batch_node *node, struct slice body)
{
    struct reader response = reader_from(body);
    struct scatter_outcome outcome;
    uint32_t i = 0;

    for (; i < node->count && scatter_next(&response, &outcome); i++) {
        if (outcome.failed)
            take_refusal(node, node->places[i], outcome.bytes);
        else
            batch_keep(&node->batch->parts[node->places[i]], outcome.bytes);
    }
    ask_all_alone(node, i, true);
}

static void take_answer(const struct batch_node *node, const struct frame *response)
{
    switch (response->status) {
    case WIRE_OK:
        take_results(node, response->body);
        break;
    case WIRE_REFUSED:
        for (uint32_t i = 0; i < node->count; i++)
            take_refusal(node, node->places[i], response->body);
        break;
    case WIRE_NOT_OWNER:
    case WIRE_UNAVAILABLE:
        ask_all_alone(node, 0, false);
        break;
    default:
        ask_all_alone(node, 0, true);
        break;
    }
}

static void node_answered(void *user, err result, const struct frame *response)
{
    struct batch_node *node = user;
    struct batch *batch = node->batch;

    node->call = 0;
    if (result == ERR_OK)
        take_answer(node, response);
    else
        ask_all_alone(node, 0, err_retry(result) == RETRY_UNKNOWN_OUTCOME);
    CHECK(batch->open > 0);
    batch->open--;
    batch_go_on(batch, false);
}

/* ---- what is asked ---- */

static struct batch_node *node_get(struct batch *batch, uint64_t replica_id)
{
    for (uint32_t i = 0; i < batch->node_count; i++) {
        if (batch->nodes[i].replica_id == replica_id)
            return &batch->nodes[i];
    }
    if (batch->node_count == CLUSTER_NODES_MAX)
        return NULL;
    struct batch_node *node = &batch->nodes[batch->node_count++];

    *node = (struct batch_node){ .batch = batch, .replica_id = replica_id };
    node->places = arena_alloc(batch->request->arena, batch->count * sizeof *node->places);
    return node;
}

/* The node that is asked first for an element alone; NULL: none can be asked now. */
static struct batch_node *node_of(struct batch *batch, const struct batch_part *part)
{
    const struct router_options *options = &batch->request->router->options;
    const struct route_reach reach = { options->port.reaches, options->port.context, 0 };
    uint64_t replica_id = route_find_member(options->map, part->call.shard, &reach).owner;

    return replica_id != 0 ? node_get(batch, replica_id) : NULL;
}

static struct slice body_of(const struct batch_node *node)
{
    const struct batch *batch = node->batch;
    size_t size = 0;
    struct buf body = { 0 };

    for (uint32_t i = 0; i < node->count; i++)
        size += LENGTH_SIZE_MAX + batch->parts[node->places[i]].call.body.size;
    (void)buf_reserve(&body, size);
    for (uint32_t i = 0; i < node->count; i++) {
        const struct slice element = batch->parts[node->places[i]].call.body;

        buf_put_u8(&body, TAG_REQUESTS);
        buf_put_compact(&body, element.size);
        buf_append(&body, element.data, element.size);
    }
    const struct slice kept = arena_copy(batch->request->arena, buf_slice(&body));

    buf_deinit(&body);
    return kept;
}

static bool send_to_node(struct batch_node *node)
{
    struct request *request = node->batch->request;
    const struct node_port *port = &request->router->options.port;
    const struct call_request call = {
        .method = (uint16_t)request->method->id,
        .priority = (uint8_t)request->priority,
        .asker = request_asker(request),
        .deadline_ms = request_time_left(request, CALLER_MEMBER_MS),
        .trace = request->trace.trace_id,
        .body = body_of(node),
        .done = node_answered,
        .user = node,
    };

    if (port->start(port->context, node->replica_id, &call, &node->call) != ERR_OK) {
        node->call = 0;
        return false;
    }
    request->attempts++;
    node->batch->open++;
    return true;
}

void batch_nodes_ask(struct batch *batch)
{
    batch->nodes = arena_zalloc(batch->request->arena, CLUSTER_NODES_MAX * sizeof *batch->nodes);
    for (uint32_t i = 0; i < batch->count; i++) {
        if (!batch_prepare(&batch->parts[i]))
            continue;
        struct batch_node *node = node_of(batch, &batch->parts[i]);

        if (node != NULL)
            node->places[node->count++] = i;
        else
            batch_queue(batch, i);
    }
    for (uint32_t i = 0; i < batch->node_count; i++) {
        struct batch_node *node = &batch->nodes[i];

        if (node->count > 1 && send_to_node(node))
            continue;
        for (uint32_t at = 0; at < node->count; at++)
            batch_queue(batch, node->places[at]);
        node->count = 0;
    }
}

void batch_nodes_cancel(struct batch *batch)
{
    const struct node_port *port = &batch->request->router->options.port;

    for (uint32_t i = 0; i < batch->node_count; i++) {
        if (batch->nodes[i].call != 0)
            port->cancel(port->context, batch->nodes[i].call);
        batch->nodes[i].call = 0;
    }
}
