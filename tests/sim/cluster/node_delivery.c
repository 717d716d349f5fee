/* Batches from shard to shard, as node/io/cluster/deliveries.c carries them: to the owner of the
 * destination as far as this node has heard, once; the shard sends again. */
#include "idl/method.h"
#include "runtime/base/check.h"
#include "runtime/cluster/wire.h"
#include "tests/sim/sim.h"
#include "tests/sim/favorites/top.h"

#define DEADLINE_MS 4000u
#define LATE_MS_MAX 9000u

static void packet(struct sim *sim, struct sim_node *node, const struct delivery_packet *p,
                   bool late)
{
    struct sim_event event = {
        .kind = EV_CALL, .node = p->to, .from = p->token, .number = p->shard
    };

    buf_put_u8(&event.bytes, late ? 0 : (uint8_t)node->id);
    buf_put_u8(&event.bytes, late);
    buf_put_u64(&event.bytes, node->life);
    buf_put_u32(&event.bytes, METHOD_CHANNEL_DELIVER);
    buf_put_u32(&event.bytes, DEADLINE_MS);
    buf_append(&event.bytes, p->request.data, p->request.size);
    if (late)
        sim_later(sim, sim_between(sim, 100, LATE_MS_MAX), &event);
    else if (!net_send(sim, node->id, &event))
        node_delivery_failed(sim, node->id, node->life, p->token, p->shard);
}

void node_delivery_failed(struct sim *sim, uint32_t proc, uint64_t life, uint64_t token,
                          uint64_t shard)
{
    sim_later(
        sim, sim_between(sim, 20, 600),
        &(struct sim_event){
            .kind = EV_CALL_FAILED, .node = proc, .life = life, .from = token, .number = shard });
}

void node_deliver(struct sim *sim, struct sim_node *node, uint32_t shard,
                  const struct shard_out *out)
{
    for (uint32_t i = 0; i < out->delivery_count; i++) {
        const struct shard_delivery *delivery = &out->deliveries[i];
        struct delivery_packet p = {
            .to = node->owners[delivery->destination],
            .token = delivery->token,
            .shard = shard,
            .request = { out->bytes.data + delivery->offset, delivery->size },
        };
        if (p.to == 0) {
            node_delivery_failed(sim, node->id, node->life, p.token, shard);
            continue;
        }
        /* A copy that was stuck somewhere comes out long after, wherever the shard is then. */
        if (!sim->healing && sim_chance(sim, 4 * sim->late)) {
            struct delivery_packet late = p;
            late.to = PROC_NODE + (uint32_t)sim_between(sim, 0, sim->node_count - 1);
            sim->counts.credits_late++;
            packet(sim, node, &late, true);
        }
        packet(sim, node, &p, false);
    }
}

static void delivered(struct sim *sim, struct sim_node *node, const struct sim_event *event,
                      enum reply_status status, struct slice body)
{
    if (node->slots[event->number].shard != NULL)
        node_step(
            sim, node, (uint32_t)event->number,
            &(struct shard_event){
                .type = SHARD_DELIVERED, .call = event->from, .status = status, .request = body });
}

void node_delivery_event(struct sim *sim, struct sim_node *node, const struct sim_event *event)
{
    struct reader reader = reader_from(buf_slice(&event->bytes));

    if (event->number == SIM_PULL_NUMBER) {
        node_pull_answered(sim, node, event);
        return;
    }
    if (event->kind == EV_CALL_FAILED) {
        delivered(sim, node, event, REPLY_UNKNOWN, (struct slice){ 0 });
        return;
    }
    bool ok = read_u8(&reader) == WIRE_OK;
    (void)read_u64(&reader);
    (void)read_u64(&reader);
    struct slice body = read_raw(&reader, reader_left(&reader));
    delivered(sim, node, event, ok ? REPLY_OK : REPLY_NOT_OWNER, ok ? body : (struct slice){ 0 });
}
