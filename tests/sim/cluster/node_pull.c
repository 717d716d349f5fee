/* What a node pulls for the homes of targets that it owns, as node/io/cluster/pulls.c does: the
 * calls of node/core/top/puller.h, to the owners as far as this node has heard. */
#include "node/core/top/puller.h"

#include "idl/method.h"
#include "runtime/cluster/wire.h"
#include "tests/sim/favorites/favorite.h"
#include "tests/sim/favorites/rebuild.h"
#include "tests/sim/sim.h"
#include "tests/sim/favorites/top.h"

#define DEADLINE_MS 4000u
#define LATE_MS_MAX 9000u

static void packet(struct sim *sim, struct sim_node *node, const struct pull_call *call,
                   uint32_t to, bool late)
{
    struct sim_event event = {
        .kind = EV_CALL, .node = to, .from = call->token, .number = SIM_PULL_NUMBER
    };

    buf_put_u8(&event.bytes, late ? 0 : (uint8_t)node->id);
    buf_put_u8(&event.bytes, late);
    buf_put_u64(&event.bytes, node->life);
    buf_put_u32(&event.bytes, call->method);
    buf_put_u32(&event.bytes, DEADLINE_MS);
    buf_append(&event.bytes, call->request.data, call->request.size);
    if (late)
        sim_later(sim, sim_between(sim, 100, LATE_MS_MAX), &event);
    else if (!net_send(sim, node->id, &event))
        node_delivery_failed(sim, node->id, node->life, call->token, SIM_PULL_NUMBER);
}

/* However it ends, the puller is told: no answer in time is a failure. */
static void send(struct sim *sim, struct sim_node *node, const struct pull_call *call)
{
    uint32_t to = node->owners[call->shard];

    sim_later(sim, DEADLINE_MS,
              &(struct sim_event){ .kind = EV_CALL_FAILED,
                                   .node = node->id,
                                   .life = node->life,
                                   .from = call->token,
                                   .number = SIM_PULL_NUMBER });
    if (to == 0)
        return;
    /* A copy that was stuck somewhere comes out long after, wherever the shard is then. */
    bool logs = call->method == METHOD_TAKE_PARTIALS || call->method == METHOD_FORGET_PARTIALS;
    if (!sim->healing && logs && sim_chance(sim, 8 * sim->late)) {
        sim->counts.pulls_late++;
        packet(sim, node, call, PROC_NODE + (uint32_t)sim_between(sim, 0, sim->node_count - 1),
               true);
    }
    packet(sim, node, call, to, false);
}

static void call_all(struct sim *sim, struct sim_node *node)
{
    struct pull_call call;

    while (puller_next(node->puller, &call))
        send(sim, node, &call);
}

void node_pull(struct sim *sim, struct sim_node *node)
{
    bool owned[SIM_SHARDS_MAX] = { false };

    if (!favorite_runs(sim))
        return;
    if (node->puller == NULL)
        node->puller = puller_new(sim->shard_count);
    for (uint32_t i = 0; i < sim->shard_count; i++)
        owned[i] = node->slots[i].shard != NULL && shard_serves(node->slots[i].shard);
    puller_begin(node->puller, sim->now_ms, sim_unix_ms(sim, node), owned);
    call_all(sim, node);
    rebuild_tick(sim, node);
}

void node_pull_answered(struct sim *sim, struct sim_node *node, const struct sim_event *event)
{
    struct reader reader = reader_from(buf_slice(&event->bytes));
    bool ok = event->kind == EV_REPLY && read_u8(&reader) == WIRE_OK;

    if (node->puller == NULL)
        return;
    (void)read_u64(&reader);
    (void)read_u64(&reader);
    puller_answered(node->puller, event->from, ok,
                    ok ? read_raw(&reader, reader_left(&reader)) : (struct slice){ 0 });
    puller_check(node->puller);
    call_all(sim, node);
}

int64_t node_pulled_ms(const struct sim_node *node, uint32_t shard)
{
    return node->puller != NULL ? puller_pulled_ms(node->puller, shard) : 0;
}

void node_pull_stop(struct sim_node *node)
{
    puller_free(node->puller);
    node->puller = NULL;
}
