#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/v1/profile.pb-c.h"
#include "idl/method.h"
#include "node/core/shard/request_shard.h"
#include "runtime/base/check.h"
#include "node/core/favorite/hours.h"
#include "tests/sim/cluster/node_claim.h"
#include "tests/sim/model/definition.h"
#include "tests/sim/events/consumer.h"
#include "tests/sim/favorites/metadata.h"
#include "tests/sim/events/event.h"
#include "tests/sim/favorites/favorite.h"
#include "tests/sim/favorites/rebuild.h"
#include "tests/sim/favorites/top.h"
#include "tests/sim/model/goods.h"
#include "tests/sim/servers/workload.h"

#define CHAOS_MS_MIN    5000u
#define CHAOS_MS_MAX    12000u
#define CHAOS_MS_LIMIT  60000u
#define CALM_MS         1000u  /* Business as usual after the last trouble. */
#define HEAL_MS_MAX     60000u /* All must be well by then. */
#define UNUSED_MS       20000u
#define FULL_HOUR_MS    6000u
#define LOOK_MS         100u
#define CONSERVATION_MS 1500u
#define EVENTS_MAX      3000000u
#define EVENTS_MIN      3000u

/* ---- setting up ---- */
static void find_shards(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->player_count; i++) {
        Holdfast__V1__GetProfileRequest request = HOLDFAST__V1__GET_PROFILE_REQUEST__INIT;
        struct refusal refusal = { 0 };
        char name[16];
        uint8_t bytes[64];
        snprintf(name, sizeof name, "p%u", i);
        request.player_id = name;
        size_t size = holdfast__v1__get_profile_request__pack(&request, bytes);
        CHECK(request_shard(METHOD_GET_PROFILE, (struct slice){ bytes, size }, sim->shard_count,
                            &sim->player_shard[i], &refusal) == ERR_OK);
    }
}

/* What the test of shrinking breaks on purpose. */
static void look_at_forbidden(struct sim *sim)
{
#define SIM_FIELD(name)                                                                            \
    if (sim->counts.name > 0 && strcmp(sim->switches.forbidden, #name) == 0)                       \
        sim_fail(sim, sim->told_shard, "forbidden: " #name);
    SIM_REACH(SIM_FIELD)
    SIM_FAULTS(SIM_FIELD)
#undef SIM_FIELD
}

struct sim *sim_new(uint64_t seed, const struct sim_switches *switches, bool verbose)
{
    struct sim *sim = mem_zalloc(sizeof *sim);

    sim->switches = *switches;
    sim->seed = seed;
    sim->random.state = seed * 0x9e3779b97f4a7c15u + 1;
    sim->verbose = verbose;
    sim->now_ms = 1000;
    if (favorite_runs(sim)) /* A full hour comes after some seconds: edges are counted by hours. */
        sim->clock_ms = HOUR_MS - SIM_UNIX_MS % HOUR_MS - FULL_HOUR_MS;
    etcd_init(sim);
    trouble_choose(sim);
    sim->nodes = mem_zalloc(sizeof *sim->nodes * SIM_NODES_MAX);
    sim->routers = mem_zalloc(sizeof *sim->routers * SIM_ROUTERS_MAX);
    find_shards(sim);
    sim->workload = workload_new(workload_rows, workload_row_count);
    sim->oracle = oracle_new(sim, workload_rules(sim->workload));
    for (uint32_t i = 0; i < sim->node_count; i++) {
        sim->nodes[i].id = PROC_NODE + i;
        sim->nodes[i].life = 1;
        sim->nodes[i].came = i < sim->first_nodes;
        if (sim->nodes[i].came)
            node_start(sim, &sim->nodes[i]);
    }
    for (uint32_t i = 0; i < sim->coord_count; i++) {
        sim->coords[i].life = 1;
        coord_start(sim, i);
    }
    for (uint32_t i = 0; i < sim->router_count; i++)
        etcd_mirror_reset(sim, PROC_ROUTER + i);
    for (uint32_t i = 0; i < sim->server_count; i++) {
        sim->servers[i].life = 1;
        server_start(sim, i);
    }
    sim_later(sim, 10, &(struct sim_event){ .kind = EV_ETCD_TICK });
    sim_later(sim, sim_between(sim, 300, 2000), &(struct sim_event){ .kind = EV_TROUBLE });
    return sim;
}

void sim_free(struct sim *sim)
{
    sim_queue_deinit(&sim->queue);
    for (uint32_t i = 0; i < SIM_COORDS_MAX; i++)
        coord_kill(sim, i);
    for (uint32_t i = 0; i < sim->node_count; i++)
        node_free(&sim->nodes[i]);
    for (uint32_t r = 0; r < SIM_ROUTERS_MAX; r++) {
        for (uint32_t i = 0; i < ROUTER_CALLS_MAX; i++)
            buf_deinit(&sim->routers[r].calls[i].body);
    }
    oracle_free(sim->oracle);
    definition_free_all(sim);
    consumer_free_all(sim);
    metadata_free_all(sim);
    event_free_all(sim);
    top_free_all(sim);
    favorite_free_all(sim);
    workload_free(sim->workload);
    etcd_deinit(sim);
    shard_out_deinit(&sim->out);
    free(sim->nodes);
    free(sim->routers);
    free(sim->ops);
    free(sim);
}

/* ---- events ---- */
static uint64_t paused_until(const struct sim *sim, uint32_t proc)
{
    if (proc >= PROC_SERVER)
        return sim->servers[proc - PROC_SERVER].paused_until_ms;
    if (proc >= PROC_COORD && proc < PROC_ROUTER)
        return sim->coords[proc - PROC_COORD].paused_until_ms;
    return proc >= PROC_NODE && proc < PROC_COORD ? sim->nodes[proc - PROC_NODE].paused_until_ms
                                                  : 0;
}

static void digest(struct sim *sim, const struct sim_event *event)
{
    uint8_t head[48];

    store_u64(head, event->at_ms);
    store_u64(head + 8, (uint64_t)event->kind);
    store_u64(head + 16, event->node);
    store_u64(head + 24, event->from);
    store_u64(head + 32, event->number);
    store_u64(head + 40, event->life);
    sim->digest =
        hash_chain(sim->digest, (struct slice){ head, sizeof head }, buf_slice(&event->bytes));
}

static void etcd_side(struct sim *sim, struct sim_event *event)
{
    switch (event->kind) {
    case EV_ETCD_TICK:
        etcd_tick(sim);
        break;
    case EV_TXN:
        if (sim->etcd.down_until_ms <= sim->now_ms)
            etcd_coord_txn(sim, event);
        else
            sim_later(sim, sim->etcd.down_until_ms - sim->now_ms, event);
        break;
    case EV_ATTACH:
        if (sim->etcd.down_until_ms <= sim->now_ms)
            server_attach(sim, event);
        else
            sim_later(sim, sim->etcd.down_until_ms - sim->now_ms, event);
        break;
    case EV_RESTORE:
        restore_event(sim, event);
        break;
    case EV_MEMBERS:
        members_event(sim);
        break;
    case EV_ROT:
        rot_event(sim, event);
        break;
    case EV_TROUBLE:
        trouble_event(sim, event);
        break;
    default:
        CHECK(false); /* an event without a receiver */
    }
    if ((event->kind == EV_TXN || event->kind == EV_ATTACH) &&
        sim->etcd.down_until_ms > sim->now_ms)
        event->bytes = (struct buf){ 0 }; /* On its way again. */
}

static void dispatch(struct sim *sim, struct sim_event *event)
{
    uint32_t proc = (uint32_t)event->node;

    if (event->kind == EV_MIRROR)
        etcd_mirror_deliver(sim, proc);
    else if (proc >= PROC_SERVER)
        server_event(sim, event);
    else if (proc >= PROC_ROUTER)
        router_event(sim, event);
    else if (proc >= PROC_COORD)
        coord_event(sim, event);
    else if (proc >= PROC_NODE)
        node_event(sim, event);
    else
        etcd_side(sim, event);
}

static bool run_until(struct sim *sim, uint64_t until_ms)
{
    struct sim_event event;

    while (sim->failure[0] == '\0' && sim_queue_pop(&sim->queue, until_ms, &event)) {
        if (sim->switches.events_max > 0 && sim->counts.events >= sim->switches.events_max)
            sim->stopped = true;
        if (sim->stopped) {
            buf_deinit(&event.bytes);
            return false;
        }
        uint32_t proc = (uint32_t)event.node;
        sim->now_ms = event.at_ms;
        uint64_t paused_ms = paused_until(sim, proc);
        if (event.life != 0 && event.life != proc_life(sim, proc)) {
            buf_deinit(&event.bytes);
            continue;
        }
        if (paused_ms > sim->now_ms && event.kind != EV_RESTART) {
            sim_later(sim, paused_ms - sim->now_ms, &event);
            continue;
        }
        digest(sim, &event);
        dispatch(sim, &event);
        sim_queue_bytes_back(&sim->queue, &event.bytes);
        if (sim->progress != NULL)
            *sim->progress = sim->counts.events;
        if (++sim->counts.events > EVENTS_MAX)
            sim_fail(sim, 0, "the run does not come to its end");
        if (sim->switches.forbidden != NULL)
            look_at_forbidden(sim);
    }
    if (sim->failure[0] == '\0')
        sim->now_ms = until_ms;
    return sim->failure[0] == '\0';
}

/* A node whose disk stays full while others have room; 0: there is none. */
static uint32_t full_owner(const struct sim *sim)
{
    for (uint32_t n = 0; n < sim->node_count; n++) {
        const struct sim_node *node = &sim->nodes[n];
        for (uint32_t i = 0; i < sim->shard_count && node->full_until_ms > sim->now_ms; i++) {
            if (node->slots[i].shard != NULL && shard_serves(node->slots[i].shard))
                return node->id;
        }
    }
    return 0;
}

/* Rows of snapshots that were given up and still take disk. */
static uint32_t leftovers(const struct sim *sim)
{
    uint32_t count = 0;

    for (uint32_t n = 0; n < sim->node_count; n++) {
        const struct sim_node *node = &sim->nodes[n];
        for (uint32_t i = 0; i < sim->shard_count; i++)
            count += node->slots[i].shard != NULL ? node->slots[i].staged.count : 0;
    }
    return count;
}

static void heal(struct sim *sim)
{
    trouble_heal(sim);
    if (!run_until(sim, sim->now_ms + CALM_MS))
        return;
    sim->quiet = true;
    sim->clock_ms += UNUSED_MS; /* What was granted and never used frees itself. */
    struct rest_wait wait = rest_wait_begin(sim, HEAL_MS_MAX);
    while (rest_wait_goes_on(sim, &wait)) {
        if (!run_until(sim, sim->now_ms + LOOK_MS))
            return;
        if (routers_open(sim) == 0 && oracle_pending(sim) == 0 && oracle_converged(sim) &&
            full_owner(sim) == 0 && definition_pending(sim) == 0 && policy_pending(sim) == 0 &&
            top_pending(sim) == 0 && top_left(sim) == 0 && program_left(sim) == 0 &&
            leftovers(sim) == 0)
            break;
    }
    if (!oracle_converged(sim)) {
        why_not_converged(sim);
        sim_fail(sim, oracle_converged_count(sim),
                 "the cluster does not serve and converge after all faults ended");
    } else if (oracle_pending(sim) > 0) {
        sim_fail(sim, 0, "%u timers, transfers or lost game servers never end",
                 oracle_pending(sim));
    } else if (definition_pending(sim) > 0) {
        sim_fail(sim, 0, "%u shards never follow the definitions", definition_pending(sim));
    } else if (policy_pending(sim) > 0) {
        sim_fail(sim, 0, "%u shards never get the policy that etcd has", policy_pending(sim));
    } else if (top_pending(sim) > 0) {
        sim_fail(sim, 0, "%u totals never come to what their edges add up to", top_pending(sim));
    } else if (top_left(sim) > 0) {
        sim_fail(sim, 0, "%u rows of targets without edges are never removed", top_left(sim));
    } else if (program_left(sim) > 0) {
        sim_fail(sim, 0, "%u shards never go on by the later rules", program_left(sim));
    } else if (leftovers(sim) > 0) {
        sim_fail(sim, 0, "%u rows of snapshots that were given up are never dropped",
                 leftovers(sim));
    } else if (routers_open(sim) > 0) {
        sim_fail(sim, 0, "%u calls never end", routers_open(sim));
    } else if (full_owner(sim) != 0) {
        sim_fail(sim, 0, "node %u owns shards for good although its disk is full", full_owner(sim));
    }
    for (uint32_t n = 0; n < sim->node_count; n++)
        sim->nodes[n].full_until_ms = 0; /* What is in the database is looked at next. */
}

/* Once more: a shard whose owner changed since may take definitions from then on, and a disk that
 * rotted before may have been found out only now. */
static void rest_again(struct sim *sim)
{
    struct rest_wait wait = rest_wait_begin(sim, HEAL_MS_MAX);

    while ((definition_pending(sim) > 0 || policy_pending(sim) > 0 || !oracle_converged(sim)) &&
           rest_wait_goes_on(sim, &wait)) {
        if (!run_until(sim, sim->now_ms + LOOK_MS))
            return;
    }
    if (!oracle_converged(sim)) {
        why_not_converged(sim);
        sim_fail(sim, oracle_converged_count(sim), "the cluster does not come to rest again");
    } else if (definition_pending(sim) > 0) {
        sim_fail(sim, 0, "%u shards never follow the definitions", definition_pending(sim));
    } else if (policy_pending(sim) > 0) {
        sim_fail(sim, 0, "%u shards never get the policy that etcd has", policy_pending(sim));
    }
}

static void count_up(struct sim *sim)
{
    for (uint32_t n = 0; n < sim->node_count; n++) {
        for (uint32_t i = 0; i < sim->shard_count; i++) {
            struct shard_stats stats;
            if (sim->nodes[n].slots[i].shard == NULL)
                continue;
            shard_stats_get(sim->nodes[n].slots[i].shard, &stats);
            sim->counts.promotions += stats.promotions;
            sim->counts.read_rounds += stats.rounds;
            sim->counts.reads_aged += stats.reads_aged;
            sim->counts.reads_waited += stats.reads_waited;
            sim->counts.reads_timed_out += stats.reads_timed_out;
            sim->counts.reads_turned_away += stats.reads_turned_away;
            sim->counts.writes_yielded += stats.writes_yielded;
            sim->counts.prepares_later += stats.prepares_later;
            sim->counts.snapshots_abandoned += stats.snapshot.abandoned;
        }
    }
}

void sim_run(struct sim *sim)
{
    sim_say(sim, "---- seed %llu: %u nodes, %u shards, %u coordinators, %u routers, %u servers",
            (unsigned long long)sim->seed, sim->node_count, sim->shard_count, sim->coord_count,
            sim->router_count, sim->server_count);
    uint64_t chaos_ms = sim_between(sim, CHAOS_MS_MIN, CHAOS_MS_MAX);

    uint64_t end_ms = sim->now_ms + chaos_ms;
    bool held = true;

    while (held && sim->now_ms < end_ms) {
        uint64_t next_ms = sim->now_ms + CONSERVATION_MS;
        held = run_until(sim, next_ms < end_ms ? next_ms : end_ms);
        conservation_check(sim);
        favorite_sum_up(sim);
        top_check_rows(sim);
    }

    /* Clusters that hardly ever serve need longer to show anything. */
    while (held && sim->counts.events < EVENTS_MIN && sim->now_ms < CHAOS_MS_LIMIT &&
           !switches_any(&sim->switches))
        held = run_until(sim, sim->now_ms + LOOK_MS);
    if (held)
        heal(sim);
    conservation_check(sim);
    favorite_sum_up(sim);
    top_check_rows(sim);
    if (sim->failure[0] == '\0' && !sim->stopped)
        oracle_check_ops(sim);
    if (sim->failure[0] == '\0' && !sim->stopped)
        trade_check(sim, run_until);
    if (sim->failure[0] == '\0' && !sim->stopped)
        damage_check(sim, run_until);
    if (sim->failure[0] == '\0' && !sim->stopped)
        rebuild_damage_check(sim, run_until);
    if (sim->failure[0] == '\0' && !sim->stopped)
        rest_again(sim);
    if (sim->failure[0] == '\0' && !sim->stopped)
        oracle_check_end(sim);
    if (sim->counts.events < EVENTS_MIN && !switches_any(&sim->switches))
        sim_fail(sim, 0, "the run has %llu events; too few to show anything",
                 (unsigned long long)sim->counts.events);
    for (uint32_t i = 0; i < sim->coord_count; i++)
        coord_kill(sim, i);
    count_up(sim);
}
