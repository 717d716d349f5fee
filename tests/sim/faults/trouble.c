/* What goes wrong, and when. */
#include <string.h>

#include "runtime/base/check.h"
#include "tests/sim/faults/wrong.h"
#include "tests/sim/sim.h"

#define JUMP_MS (16u * 60u * 1000u)
#define DAY_MS  (24u * 60u * 60u * 1000u)
/* A clock that is ahead by more is ahead by so many times as much: minutes. */
#define CLOCK_FAR_MS    1000
#define CLOCK_FAR_TIMES 300

static void take_smaller(uint32_t *number, uint32_t given)
{
    if (given > 0 && given < *number)
        *number = given;
}

/* What the switches say, after everything was drawn. */
static void leave_out(struct sim *sim)
{
    take_smaller(&sim->node_count, sim->switches.nodes);
    take_smaller(&sim->shard_count, sim->switches.shards);
    take_smaller(&sim->player_count, sim->switches.players);
    take_smaller(&sim->server_count, sim->switches.servers);
    if (sim_without(sim, WITHOUT_losses))
        sim->drop = 0;
    if (sim_without(sim, WITHOUT_doubles))
        sim->twice = 0;
    if (sim_without(sim, WITHOUT_lates))
        sim->late = 0;
    if (sim_without(sim, WITHOUT_duels))
        sim->duel = 0;
    if (sim_without(sim, WITHOUT_answers))
        sim->answer_lost = 0;
    if (sim_without(sim, WITHOUT_evictions))
        sim->evict = 0;
    if (sim_without(sim, WITHOUT_checkpoints))
        sim->checkpoint = 0;
}

void trouble_choose(struct sim *sim)
{
    static const uint32_t sizes[] = { 3, 3, 3, 3, 3, 3, 3, 1, 5, 3 };

    sim->node_count = sizes[sim_between(sim, 0, ARRAY_SIZE(sizes) - 1)];
    sim->shard_count = sim_chance(sim, 700) ? 2 : 4;
    sim->coord_count = (uint32_t)sim_between(sim, 1, SIM_COORDS_MAX);
    sim->router_count = (uint32_t)sim_between(sim, 1, SIM_ROUTERS_MAX);
    sim->server_count = (uint32_t)sim_between(sim, 2, SIM_SERVERS_MAX);
    sim->player_count = (uint32_t)sim_between(sim, 3, SIM_PLAYERS_MAX);
    sim->drop = sim_chance(sim, 600) ? (uint32_t)sim_between(sim, 0, 80) : 0;
    sim->twice = sim_chance(sim, 600) ? (uint32_t)sim_between(sim, 0, 80) : 0;
    sim->late = sim_chance(sim, 700) ? (uint32_t)sim_between(sim, 0, 60) : 0;
    sim->delay_ms_max =
        (uint32_t)(sim_chance(sim, 700) ? sim_between(sim, 4, 40) : sim_between(sim, 40, 250));
    sim->sync_ms_max =
        (uint32_t)(sim_chance(sim, 700) ? sim_between(sim, 2, 10) : sim_between(sim, 10, 80));
    sim->load_ms_max = (uint32_t)sim_between(sim, 1, 60);
    sim->deadline_ms = sim_chance(sim, 600) ? 3000 : sim_between(sim, 300, 3000);
    sim->checkpoint = (uint32_t)(sim_chance(sim, 700) ? 12 : sim_between(sim, 20, 300));
    sim->evict = (uint32_t)sim_between(sim, 0, 300);
    sim->trouble_ms = (uint32_t)(sim_chance(sim, 150) ? 60000 : sim_between(sim, 150, 1500));
    sim->duel = sim_chance(sim, 500) ? (uint32_t)sim_between(sim, 0, 500) : 0;
    sim->answer_lost = sim_chance(sim, 750) ? 15 : 250;
    sim->act_ms = sim_between(sim, 40, 160);
    sim->lag_ms_max = (uint32_t)(sim_chance(sim, 300) ? 120000 : sim_between(sim, 100, 2500));
    sim->part_bytes = (uint32_t)sim_between(sim, 256, 4096);
    leave_out(sim);
    members_choose(sim);
    restore_choose(sim);
    rot_choose(sim);
    wrong_choose(sim);
    variety_choose(sim);
}

static void later(struct sim *sim, uint32_t proc, uint64_t low, uint64_t high)
{
    sim_later(sim, sim_between(sim, low, high),
              &(struct sim_event){ .kind = EV_RESTART, .node = proc });
}

static struct sim_node *any_node(struct sim *sim)
{
    return &sim->nodes[sim_between(sim, 0, sim->node_count - 1)];
}

/* ---- nodes ---- */
void trouble_crash(struct sim *sim, struct sim_node *node)
{
    if (!node->up)
        return;
    sim->counts.crashes++;
    node_crash(sim, node);
    later(sim, node->id, 1, sim_chance(sim, 600) ? 400 : 3500);
}

static void crash_some(struct sim *sim)
{
    if (!sim_chance(sim, 120)) {
        trouble_crash(sim, any_node(sim));
        return;
    }
    for (uint32_t i = 0; i < sim->node_count; i++) {
        if (sim_chance(sim, 700))
            trouble_crash(sim, &sim->nodes[i]);
    }
}

static void pause_node(struct sim *sim)
{
    struct sim_node *node = any_node(sim);

    sim->counts.pauses++;
    node->paused_until_ms = sim->now_ms + sim_between(sim, 50, 3500);
    sim_say(sim, "node %u   freezes until %llu", node->id,
            (unsigned long long)node->paused_until_ms);
}

static void stall_disk(struct sim *sim)
{
    sim->counts.disk_stalls++;
    any_node(sim)->stalled_until_ms = sim->now_ms + sim_between(sim, 100, 1500);
}

static void fill_disk(struct sim *sim)
{
    struct sim_node *node = any_node(sim);

    sim->counts.disks_filled++;
    node->filled = true;
    node->full_until_ms = sim->now_ms + sim_between(sim, 200, sim_chance(sim, 500) ? 1500 : 9000);
    sim_say(sim, "node %u   has no disk left until %llu", node->id,
            (unsigned long long)node->full_until_ms);
    /* Sometimes not even for what is on its way. */
    if (sim_chance(sim, 300))
        node->stalled_until_ms = node->full_until_ms;
}

/* Two would be a majority whose clocks are wrong, as is one alone: then that is what time it is. */
static bool other_is_far(const struct sim *sim, const struct sim_node *node)
{
    for (uint32_t i = 0; i < sim->node_count; i++) {
        if (&sim->nodes[i] != node && sim->nodes[i].skew_ms > 3000)
            return true;
    }
    return false;
}

static void skew_clock(struct sim *sim)
{
    struct sim_node *node = any_node(sim);
    int64_t span = sim_chance(sim, 800) ? 300 : 3000;

    sim->counts.clock_skews++;
    node->skew_ms = (int64_t)sim_between(sim, 0, (uint64_t)(2 * span)) - span;
    if (node->skew_ms > CLOCK_FAR_MS && sim->node_count > 1 && !other_is_far(sim, node)) {
        node->skew_ms *= CLOCK_FAR_TIMES;
        sim->counts.clocks_far++;
    }
    sim_say(sim, "node %u   has its clock off by %lld ms", node->id, (long long)node->skew_ms);
}

static void jump_clocks(struct sim *sim)
{
    if (sim->counts.clock_jumps > 0 || !sim_chance(sim, 150))
        return;
    sim->counts.clock_jumps++;
    sim->clock_ms += JUMP_MS + sim_between(sim, 0, 120000);
    if (sim->seed % 2 == 1) /* A day or nearly: `key:` ids are over, some of them only later. */
        sim->clock_ms += DAY_MS - JUMP_MS - 60000;
    sim_say(sim, "all clocks jump");
}

/* ---- network ---- */
static void partition(struct sim *sim)
{
    bool side[PROCS];

    sim->counts.partitions++;
    for (uint32_t i = 0; i < PROCS; i++)
        side[i] = sim_chance(sim, 500);
    for (uint32_t i = 0; i < PROCS; i++) {
        for (uint32_t j = 0; j < PROCS; j++)
            sim->cut[i][j] = side[i] != side[j];
    }
    sim_say(sim, "network  is split: nodes %d%d%d%d%d", side[1], side[2], side[3], side[4],
            side[5]);
}

static void cut_one_way(struct sim *sim)
{
    uint32_t from = any_node(sim)->id;
    uint32_t to = any_node(sim)->id;

    sim->counts.one_way_cuts++;
    sim->cut[from][to] = true;
    sim_say(sim, "network  loses all from %u to %u", from, to);
}

static void isolate(struct sim *sim)
{
    uint32_t node = any_node(sim)->id;

    sim->counts.isolations++;
    for (uint32_t i = 0; i < PROCS; i++)
        sim->cut[node][i] = sim->cut[i][node] = true;
    sim_say(sim, "network  isolates node %u", node);
}

static void mend_network(struct sim *sim)
{
    memset(sim->cut, 0, sizeof sim->cut);
}

/* ---- etcd ---- */
static void etcd_outage(struct sim *sim)
{
    sim->counts.etcd_outages++;
    sim->etcd.down_until_ms = sim->now_ms + sim_between(sim, 100, 3500);
    sim_say(sim, "etcd     is down until %llu", (unsigned long long)sim->etcd.down_until_ms);
}

static void etcd_cut(struct sim *sim)
{
    uint32_t proc = (uint32_t)sim_between(sim, 1, PROCS - 1);

    sim->counts.etcd_cuts++;
    sim->cut_until_ms[proc] = sim->now_ms + sim_between(sim, 100, 5000);
    sim_say(sim, "etcd     is out of reach for process %u", proc);
}

static void revoke_lease(struct sim *sim)
{
    struct etcd_sim *etcd = &sim->etcd;

    if (etcd->lease_count == 0)
        return;
    const struct etcd_lease *lease = &etcd->leases[sim_between(sim, 0, etcd->lease_count - 1)];
    if (lease->gone)
        return;
    sim->counts.leases_revoked++;
    etcd_lease_revoke(sim, lease->id);
}

static void disturb_watch(struct sim *sim)
{
    uint32_t proc = (uint32_t)sim_between(sim, 1, PROC_SERVER - 1);

    if (sim_chance(sim, 600)) {
        sim->counts.watch_delays++;
        sim->mirrors[proc].held_until_ms = sim->now_ms + sim_between(sim, 50, 3000);
        return;
    }
    sim->counts.watch_resets++;
    if (proc < PROC_NODE + sim->node_count || (proc >= PROC_COORD && proc < PROC_COORD + 1) ||
        (proc >= PROC_ROUTER && proc < PROC_ROUTER + sim->router_count))
        etcd_mirror_reset(sim, proc);
}

/* ---- the others ---- */
static void kill_coordinator(struct sim *sim)
{
    uint32_t place = (uint32_t)sim_between(sim, 0, sim->coord_count - 1);

    if (sim->coords[place].core == NULL)
        return;
    if (sim_chance(sim, 400)) {
        sim->coords[place].paused_until_ms = sim->now_ms + sim_between(sim, 100, 4000);
        sim_say(sim, "coord %u  freezes", place);
        return;
    }
    sim->counts.coordinators_killed++;
    coord_kill(sim, place);
    later(sim, PROC_COORD + place, 1, 2500);
}

static void trouble_server(struct sim *sim)
{
    uint32_t place = (uint32_t)sim_between(sim, 0, sim->server_count - 1);
    struct sim_server *server = &sim->servers[place];

    if (!server->up)
        return;
    if (sim_chance(sim, 500)) {
        sim->counts.servers_paused++;
        server->paused_until_ms = sim->now_ms + sim_between(sim, 500, 9000);
        sim_say(sim, "server %u freezes", place);
        return;
    }
    sim->counts.servers_killed++;
    sim_say(sim, "server %u dies", place);
    server->up = false;
    server->life++;
    later(sim, PROC_SERVER + place, 1, 6000);
}

/* One that serves some shard, if there is any. */
static struct sim_node *any_owner(struct sim *sim)
{
    struct sim_node *node = any_node(sim);

    for (uint32_t tries = 0; tries < sim->node_count; tries++) {
        for (uint32_t i = 0; i < sim->shard_count && node->up; i++) {
            if (node->slots[i].shard != NULL && shard_serves(node->slots[i].shard))
                return node;
        }
        node = &sim->nodes[node->id % sim->node_count]; /* The next one. */
    }
    return node;
}

static void cut_from(struct sim *sim, uint32_t node, uint32_t except)
{
    for (uint32_t i = 0; i < sim->node_count; i++) {
        uint32_t other = sim->nodes[i].id;
        if (other != node && other != except)
            sim->cut[node][other] = sim->cut[other][node] = true;
    }
}

static void hold_watch(struct sim *sim, uint32_t proc, uint64_t ms)
{
    sim->mirrors[proc].held_until_ms = sim->now_ms + ms;
}

void trouble_duel(struct sim *sim, uint32_t claimant)
{
    uint32_t voter = any_node(sim)->id;

    if (sim->now_ms < sim->duel_next_ms)
        return;
    sim->duel_next_ms = sim->now_ms + 1200;
    if (voter == claimant)
        voter = sim->nodes[claimant % sim->node_count].id;
    sim->duel_voter = voter;
    sim->duel_claimant = claimant;
    sim->counts.duels++;
    sim_say(sim, "network  leaves node %u to node %u", claimant, voter);
    cut_from(sim, claimant, voter);
    for (uint32_t i = 0; i < sim->node_count; i++) {
        if (sim->nodes[i].id != claimant)
            hold_watch(sim, sim->nodes[i].id, sim_between(sim, 100, 1500));
    }
}

/* It has just promised something, or its disk lags: it is back before anybody does without it. */
static void crash_soon(struct sim *sim, uint32_t voter)
{
    if (!node_get(sim, voter)->up)
        return;
    sim->counts.crashes++;
    node_crash(sim, node_get(sim, voter));
    later(sim, voter, 1, 40);
}

/* A node loses its lease, and its shards, and does not hear of it. */
static void depose(struct sim *sim)
{
    struct sim_node *node = any_owner(sim);

    if (!node->up)
        return;
    sim->counts.deposals++;
    sim_say(sim, "node %u   loses its lease unheard", node->id);
    hold_watch(sim, node->id, sim_between(sim, 300, 3000));
    sim->cut_until_ms[node->id] = sim->now_ms + sim_between(sim, 300, 3000);
    node->slow_until_ms = sim->now_ms + sim_between(sim, 0, 1500);
    etcd_lease_revoke(sim, node->lease);
    if (sim_chance(sim, 500))
        cut_from(sim, node->id, sim_chance(sim, 500) ? any_node(sim)->id : 0);
}

/* Its routers still reach it, the other nodes do not. */
static void isolate_replica(struct sim *sim)
{
    uint32_t node = any_owner(sim)->id;

    sim->counts.replicas_isolated++;
    sim_say(sim, "network  isolates node %u from nodes", node);
    cut_from(sim, node, 0);
    hold_watch(sim, node, sim_between(sim, 100, 3000));
}

static void crash_stalled(struct sim *sim)
{
    struct sim_node *node = any_owner(sim);

    sim->counts.disk_stalls++;
    node->stalled_until_ms = sim->now_ms + 1500;
    sim_later(sim, sim_between(sim, 200, 1400),
              &(struct sim_event){ .kind = EV_TROUBLE, .number = node->id });
}

/* The coordinator that leads loses its election, and does not hear of it for a while. */
static void unseat(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->coord_count; i++) {
        const struct sim_coord *coord = &sim->coords[i];
        if (coord->core == NULL || !coord->elected)
            continue;
        sim->counts.unseatings++;
        sim_say(sim, "coord %u  loses its election unheard", i);
        sim->cut_until_ms[PROC_COORD + i] = sim->now_ms + sim_between(sim, 50, 1400);
        hold_watch(sim, PROC_COORD + i, sim_between(sim, 50, 2500));
        etcd_lease_revoke(sim, coord->lease);
        return;
    }
}

/* On any node, as long as a majority of every shard stays: found at the next start, and repaired.
 */
static void flip_bit(struct sim *sim)
{
    struct sim_node *node = any_node(sim);

    if (sim_chance(sim, 600))
        rot_flip(sim, node);
}

void trouble_amid_repair(struct sim *sim, struct sim_node *node)
{
    if (sim->healing)
        return;
    for (uint32_t i = 0; i < sim->coord_count; i++) {
        if (sim->coords[i].core == NULL || !sim->coords[i].elected || !sim_chance(sim, 300) ||
            sim_without(sim, WITHOUT_coordinators))
            continue;
        sim->counts.coordinators_killed++;
        coord_kill(sim, i);
        later(sim, PROC_COORD + i, 1, 1500);
    }
    if (sim_chance(sim, 100) && !sim_without(sim, WITHOUT_crashes))
        sim_later(sim, sim_between(sim, 0, 200),
                  &(struct sim_event){ .kind = EV_TROUBLE, .number = node->id });
}

/* A game server's lease ends early; it is back at its next heartbeat, which the coordinators hear
 * of later than of its end. */
static void flap_server(struct sim *sim)
{
    struct sim_server *server = &sim->servers[sim_between(sim, 0, sim->server_count - 1)];

    if (!server->up || !server->registered || server->attaching)
        return;
    sim->counts.servers_flapped++;
    etcd_lease_revoke(sim, server->lease);
    sim_later(sim, sim->delay_ms_max / 2 + sim_between(sim, 5, 60),
              &(struct sim_event){ .kind = EV_TROUBLE, .number = PROC_COORD });
}

static void deafen_coordinators(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->coord_count; i++)
        hold_watch(sim, PROC_COORD + i, sim_between(sim, 300, 1500));
}

struct trouble {
    void (*make)(struct sim *sim);
    enum sim_without kind;
    uint32_t weight;
};

static void make_trouble(struct sim *sim)
{
    static const struct trouble troubles[] = {
        { crash_some, WITHOUT_crashes, 3 },     { pause_node, WITHOUT_pauses, 2 },
        { partition, WITHOUT_partitions, 2 },   { cut_one_way, WITHOUT_cuts, 1 },
        { isolate, WITHOUT_isolations, 2 },     { skew_clock, WITHOUT_skews, 1 },
        { jump_clocks, WITHOUT_jumps, 1 },      { etcd_outage, WITHOUT_outages, 1 },
        { etcd_cut, WITHOUT_etcd_cuts, 1 },     { revoke_lease, WITHOUT_leases, 1 },
        { disturb_watch, WITHOUT_watches, 2 },  { kill_coordinator, WITHOUT_coordinators, 1 },
        { trouble_server, WITHOUT_servers, 2 }, { stall_disk, WITHOUT_stalls, 1 },
        { depose, WITHOUT_deposals, 3 },        { isolate_replica, WITHOUT_isolations, 2 },
        { crash_stalled, WITHOUT_crashes, 2 },  { unseat, WITHOUT_unseatings, 1 },
        { flip_bit, WITHOUT_rot, 1 },           { flap_server, WITHOUT_servers, 2 },
        { fill_disk, WITHOUT_fulls, 1 },
    };
    uint32_t weights = 0;
    uint32_t at = 0;

    if (sim_chance(sim, 450))
        mend_network(sim);
    for (uint32_t i = 0; i < ARRAY_SIZE(troubles); i++)
        weights += troubles[i].weight;
    uint64_t dice = sim_between(sim, 0, weights - 1);
    while (dice >= troubles[at].weight)
        dice -= troubles[at++].weight;
    if (!sim_without(sim, troubles[at].kind))
        troubles[at].make(sim);
}

void trouble_event(struct sim *sim, const struct sim_event *event)
{
    struct sim_event again = { .kind = EV_TROUBLE };
    struct sim_random kept = sim->random;

    if (sim->healing)
        return;
    if (event->number == PROC_COORD) {
        deafen_coordinators(sim);
        return;
    }
    if (event->number != 0) {
        if (!sim_without(sim, WITHOUT_crashes))
            crash_soon(sim, (uint32_t)event->number);
        return;
    }
    /* A stream of its own for each, so that those left out do not change the others. */
    sim->random.state = (sim->seed * 0x9e3779b97f4a7c15u) ^ (sim->troubles * 0xd1342543de82ef95u);
    sim_later(sim, sim_between(sim, 1, sim->trouble_ms), &again);
    if (!switches_skip(&sim->switches, sim->troubles++))
        make_trouble(sim);
    sim->random = kept;
}

void trouble_heal(struct sim *sim)
{
    sim_say(sim, "---- all is well again");
    sim->healing = true;
    mend_network(sim);
    memset(sim->cut_until_ms, 0, sizeof sim->cut_until_ms);
    sim->etcd.down_until_ms = 0;
    sim->drop = sim->twice = 0;
    sim->evict /= 20; /* Rows that leave faster than they come back would never end. */
    sim->delay_ms_max = sim->delay_ms_max < 40 ? sim->delay_ms_max : 40;
    sim->sync_ms_max = sim->sync_ms_max < 10 ? sim->sync_ms_max : 10;
    /* Two thousand entries whose rows are all cold take a while even so. */
    sim->load_ms_max = sim->load_ms_max < 15 ? sim->load_ms_max : 15;
    for (uint32_t i = 0; i < sim->node_count; i++) {
        sim->nodes[i].paused_until_ms = 0;
        sim->nodes[i].stalled_until_ms = 0;
        sim->nodes[i].full_until_ms = 0;
        sim->nodes[i].slow_until_ms = 0;
        sim->nodes[i].skew_ms = sim->nodes[i].skew_ms > 0 ? 100 : -100;
    }
    /* In some runs one disk stays full: the others carry on, and get its shards. Not where nodes
     * are replaced, or replicas repaired or rebuilt: it may be the only one that could take a
     * replica. */
    if (sim->node_count >= 3 && sim->members_ms == 0 && sim->counts.bits_flipped == 0 &&
        sim->counts.rebuilds_asked == 0 && sim_chance(sim, 250) &&
        !sim_without(sim, WITHOUT_fulls)) {
        struct sim_node *node = any_node(sim);
        node->filled = true;
        node->full_until_ms = UINT64_MAX;
        sim_say(sim, "node %u   has no disk left for good", node->id);
    }
    for (uint32_t i = 0; i < sim->coord_count; i++)
        sim->coords[i].paused_until_ms = 0;
    for (uint32_t i = 0; i < sim->server_count; i++)
        sim->servers[i].paused_until_ms = 0;
    for (uint32_t i = 0; i < PROCS; i++)
        sim->mirrors[i].held_until_ms = 0;
    members_heal(sim);
}
