/* The network: messages are lost, doubled, late and out of order; links are cut one way or both. */
#include "runtime/base/check.h"
#include "tests/sim/sim.h"

uint64_t proc_life(const struct sim *sim, uint32_t proc)
{
    if (proc >= PROC_SERVER)
        return sim->servers[proc - PROC_SERVER].life;
    if (proc >= PROC_ROUTER)
        return 0;
    if (proc >= PROC_COORD)
        return sim->coords[proc - PROC_COORD].life;
    return proc >= PROC_NODE ? sim->nodes[proc - PROC_NODE].life : 0;
}

#define STUCK_MS_MAX 2500u
#define SLOW_MS_MAX  1200u

/* Mostly quick; now and then as late as it may be, so messages overtake each other. */
static uint64_t delay_ms(struct sim *sim)
{
    uint64_t max = sim->delay_ms_max;

    if (!sim_chance(sim, 150))
        max = max / 10 + 1;
    else if (!sim->healing && sim_chance(sim, 40))
        max = STUCK_MS_MAX;
    return sim_between(sim, 1, max);
}

#define STRAGGLE_MS_MAX 9000u

/* A copy comes out long after, in another life of its receiver, or after a disk was wiped. */
static void straggle(struct sim *sim, const struct sim_event *event)
{
    uint32_t die = op_twist(sim->seed, ~sim->counts.replication_messages++);

    if (sim->healing || die % 1000 >= sim->straggle)
        return;
    struct sim_event copy = *event;
    copy.bytes = (struct buf){ 0 };
    buf_append(&copy.bytes, event->bytes.data, event->bytes.size);
    sim->counts.stragglers++;
    sim_later(sim, 300 + die / 1000 % STRAGGLE_MS_MAX, &copy);
}

bool net_send(struct sim *sim, uint32_t from, struct sim_event *event)
{
    uint32_t to = (uint32_t)event->node;

    CHECK(to < PROCS && from < PROCS);
    if (sim->cut[from][to] || sim_chance(sim, sim->drop)) {
        sim->counts.messages_lost++;
        buf_deinit(&event->bytes);
        return false;
    }
    if (event->kind == EV_REP && sim_chance(sim, sim->twice)) {
        struct sim_event copy = *event;
        copy.bytes = (struct buf){ 0 };
        buf_append(&copy.bytes, event->bytes.data, event->bytes.size);
        sim->counts.messages_doubled++;
        sim_later(sim, delay_ms(sim) * sim_between(sim, 1, 8), &copy);
    }
    if (event->kind == EV_REP && sim->straggle > 0)
        straggle(sim, event);
    uint64_t extra_ms = 0;
    if (event->kind == EV_REP && node_get(sim, to)->slow_until_ms > sim->now_ms)
        extra_ms = sim_between(sim, 0, SLOW_MS_MAX);
    sim_later(sim, delay_ms(sim) + extra_ms, event);
    return true;
}

bool net_etcd_reachable(const struct sim *sim, uint32_t proc)
{
    return sim->etcd.down_until_ms <= sim->now_ms && sim->cut_until_ms[proc] <= sim->now_ms;
}
