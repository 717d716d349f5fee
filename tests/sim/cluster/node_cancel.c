/* A router says that the caller of a call has gone: what only answers it is given up. */
#include "runtime/base/check.h"
#include "tests/sim/sim.h"

static struct node_call *call_of(struct sim_node *node, const struct sim_event *event)
{
    uint32_t proc = PROC_ROUTER + ((uint32_t)(event->number >> 12) & 0xf);

    for (uint32_t i = 0; i < NODE_CALLS_MAX; i++) {
        struct node_call *call = &node->calls[i];
        if (call->call != 0 && call->proc == proc && call->send == event->from &&
            call->number == event->number)
            return call;
    }
    return NULL;
}

/* Nothing is answered from then on, whatever becomes of it. */
void node_cancel(struct sim *sim, struct sim_node *node, const struct sim_event *event)
{
    struct node_call *call = call_of(node, event);

    if (call == NULL || node->slots[call->shard].shard == NULL)
        return;
    uint64_t gone = call->call;
    uint32_t shard = call->shard;
    sim->counts.calls_cancelled++;
    node_step(sim, node, shard, &(struct shard_event){ .type = SHARD_CANCEL, .call = gone });
    if (call->call != gone) {
        sim_fail(sim, shard, "node %u answers a call whose caller has gone", node->id);
        return;
    }
    buf_clear(&call->request);
    call->call = 0;
}
