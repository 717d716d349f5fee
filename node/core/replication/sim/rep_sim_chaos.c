/* Clients, coordinator and trouble, by seed. */
#include <stdio.h>

#include "node/core/replication/sim/rep_sim_chaos.h"
#include "node/core/replication/sim/rep_sim_check.h"
#include "runtime/base/check.h"

#define SPARES      2u
#define MONITOR_MS  25u
#define UNSERVED_MS 400u
#define HEAL_MS_MAX 60000u

static uint64_t between(struct rep_sim *sim, uint64_t low, uint64_t high)
{
    return sim_random_between(&sim->random, low, high);
}

static struct sim_node *any_node(struct rep_sim *sim)
{
    return &sim->nodes[between(sim, 0, sim->node_count - 1)];
}

static void again(struct rep_sim *sim, enum sim_kind kind, uint64_t delay_ms)
{
    sim_queue_push(&sim->queue,
                   &(struct sim_event){ .at_ms = sim->now_ms + delay_ms, .kind = (int)kind });
}

static const struct rep_record *record_get(const struct rep_sim *sim)
{
    return &sim->records[sim->record_count - 1];
}

static bool serves(const struct rep_sim *sim, const struct sim_node *node)
{
    return node->rep != NULL && rep_role(node->rep) == REP_OWNER &&
           rep_epoch(node->rep) == record_get(sim)->epoch &&
           rep_owner(node->rep) == record_get(sim)->owner;
}

/* ---- Clients ---- */

static void client(struct rep_sim *sim)
{
    char text[32];

    for (uint32_t i = 0; i < sim->node_count; i++) {
        struct sim_node *node = &sim->nodes[i];
        if (node->rep == NULL || rep_role(node->rep) != REP_OWNER)
            continue;
        for (uint64_t n = between(sim, 0, 3); n > 0; n--) {
            snprintf(text, sizeof text, "grant %llu",
                     (unsigned long long)sim_random_next(&sim->random));
            if (rep_sim_propose(sim, node->id, text) == ERR_FULL)
                sim->counts.full++;
        }
        if (sim_random_chance(&sim->random, 400) && rep_sim_read(sim, node->id) == ERR_NOT_OWNER)
            rep_sim_fail(sim, "an owner refuses a read");
    }
}

/* ---- Coordinator ---- */

static uint64_t any_member(struct rep_sim *sim)
{
    const struct membership *m = &record_get(sim)->membership;
    uint64_t at = between(sim, 0, m->count + m->new_count - 1);

    return at < m->count ? m->members[at] : m->new_members[at - m->count];
}

static void promote_any(struct rep_sim *sim)
{
    struct membership m = record_get(sim)->membership;

    rep_sim_record(sim, any_member(sim), &m);
}

static struct sim_node *spare_node(struct rep_sim *sim)
{
    uint64_t first = between(sim, 0, sim->node_count - 1);

    for (uint32_t i = 0; i < sim->node_count; i++) {
        struct sim_node *node = &sim->nodes[(first + i) % sim->node_count];
        if (!membership_names(&record_get(sim)->membership, node->id) && !node->wiped)
            return node;
    }
    return NULL;
}

static void insert(uint64_t *ids, uint32_t *count, uint64_t id)
{
    uint32_t at = (*count)++;

    for (; at > 0 && ids[at - 1] > id; at--)
        ids[at] = ids[at - 1];
    ids[at] = id;
}

static void learn(struct rep_sim *sim)
{
    struct membership m = record_get(sim)->membership;
    const struct sim_node *spare = spare_node(sim);

    if (spare == NULL)
        return;
    m.learner = spare->id;
    sim->counts.learns++;
    rep_sim_record(sim, any_member(sim), &m);
}

static bool has_learned(struct rep_sim *sim, uint64_t learner)
{
    uint64_t matched, heard_ms;

    for (uint32_t i = 0; i < sim->node_count; i++) {
        const struct rep *rep = sim->nodes[i].rep;
        if (serves(sim, &sim->nodes[i]) && rep_member_state(rep, learner, &matched, &heard_ms))
            return matched + 8 >= rep_commit_index(rep);
    }
    return false;
}

/* The learner comes, and perhaps one goes. */
static void promote_learner(struct rep_sim *sim)
{
    struct membership m = record_get(sim)->membership;
    uint64_t leaving = m.count >= 3 ? m.members[between(sim, 0, m.count - 1)] : 0;

    if (!has_learned(sim, m.learner) || m.count == MEMBERS_MAX)
        return;
    m.config++;
    m.new_count = 0;
    for (uint32_t i = 0; i < m.count; i++)
        if (m.members[i] != leaving)
            m.new_members[m.new_count++] = m.members[i];
    insert(m.new_members, &m.new_count, m.learner);
    m.learner = 0;
    sim->counts.learned++;
    rep_sim_record(sim, any_member(sim), &m);
}

/* Of those that dropped what they had, the coordinator lets no one join that has not learned. */
static void join(struct rep_sim *sim)
{
    struct membership m = record_get(sim)->membership;
    uint64_t size = between(sim, 3, 5);

    m.config++;
    m.new_count = 0;
    m.learner = 0;
    for (uint32_t i = 0; i < sim->node_count && m.new_count < size; i++)
        if (!sim->nodes[i].disk.dropped &&
            (sim->node_count - i <= size - m.new_count || sim_random_chance(&sim->random, 600)))
            m.new_members[m.new_count++] = i + 1;
    if (m.new_count == 0)
        return;
    sim->counts.joins++;
    rep_sim_record(sim, any_member(sim), &m);
}

/* Only by the owner whose joint START committed; its record is compared in the transaction. */
static void leave(struct rep_sim *sim)
{
    struct membership m = record_get(sim)->membership;

    for (uint32_t i = 0; i < sim->node_count; i++) {
        if (!serves(sim, &sim->nodes[i]))
            continue;
        struct membership next = { .config = m.config + 1, .count = m.new_count };
        for (uint32_t n = 0; n < m.new_count; n++)
            next.members[n] = m.new_members[n];
        sim->counts.leaves++;
        rep_sim_record(sim, next.members[between(sim, 0, next.count - 1)], &next);
        return;
    }
}

static void abort_join(struct rep_sim *sim)
{
    struct membership m = record_get(sim)->membership;

    m.config++;
    m.new_count = 0;
    sim->counts.aborts++;
    rep_sim_record(sim, m.members[between(sim, 0, m.count - 1)], &m);
}

static void change_members(struct rep_sim *sim)
{
    const struct membership *m = &record_get(sim)->membership;

    if (m->learner != 0 && !sim_random_chance(&sim->random, 100))
        promote_learner(sim);
    else if (m->new_count == 0 && sim_random_chance(&sim->random, 600))
        learn(sim);
    else if (m->new_count == 0)
        join(sim);
    else if (sim_random_chance(&sim->random, 250))
        abort_join(sim);
    else
        leave(sim);
}

static void bring_snapshots(struct rep_sim *sim)
{
    for (uint32_t i = 0; i < sim->node_count; i++) {
        const struct sim_node *node = &sim->nodes[i];
        if (node->rep == NULL)
            continue;
        for (uint64_t to = 1; to <= sim->node_count; to++)
            if (to != node->id && rep_member_needs_snapshot(node->rep, to))
                rep_sim_snapshot(sim, node->id, to);
    }
}

static void forget_removed(struct rep_sim *sim)
{
    for (uint32_t i = 0; i < sim->node_count; i++) {
        struct sim_node *node = &sim->nodes[i];
        if (node->rep == NULL || node->wiped || !rep_is_removed(node->rep) ||
            rep_last_index(node->rep) == 0 ||
            membership_has(&record_get(sim)->membership, node->id))
            continue;
        sim->counts.removals++;
        if (sim_random_chance(&sim->random, 300))
            rep_sim_forget(sim, node->id);
    }
}

static void monitor(struct rep_sim *sim)
{
    for (uint32_t i = 0; i < sim->node_count; i++) {
        struct sim_node *node = &sim->nodes[i];
        if (serves(sim, node))
            sim->serving_ms = sim->now_ms;
        if (node->rep != NULL && !node->blind && sim_random_chance(&sim->random, 200))
            sim_queue_push(&sim->queue, &(struct sim_event){ .at_ms = sim->now_ms + 1,
                                                             .kind = SIM_RECORD,
                                                             .node = node->id,
                                                             .life = node->life,
                                                             .number = sim->record_count - 1 });
    }
    bring_snapshots(sim);
    forget_removed(sim);
    if (sim->now_ms - sim->serving_ms > UNSERVED_MS)
        promote_any(sim);
}

/* ---- Trouble ---- */

/* Who is cut off from the others may be cut off from etcd too, and go on believing it owns. */
static void partition(struct rep_sim *sim)
{
    bool heal = sim_random_chance(&sim->random, 300);
    bool one_way = sim_random_chance(&sim->random, 200);
    uint64_t side = sim_random_next(&sim->random);

    if (sim_random_chance(&sim->random, 400))
        side = 1u << between(sim, 0, sim->node_count - 1);
    sim->counts.partitions++;
    for (uint32_t a = 0; a < sim->node_count; a++) {
        bool blind = ((side >> a) & 1) != 0 && sim_random_chance(&sim->random, 600);
        sim->nodes[a].blind = !heal && blind;
        for (uint32_t b = 0; b < sim->node_count; b++) {
            bool apart = ((side >> a) & 1) != ((side >> b) & 1);
            sim->cut[a][b] = !heal && apart && (!one_way || ((side >> a) & 1) != 0);
        }
    }
}

/* Two owners take turns, each cut off while the other has its turn: tails that no majority has
 * grow on both sides, and START after START stays alone. */
static void duel(struct rep_sim *sim, uint64_t out, uint64_t in, uint64_t turns)
{
    struct membership m = record_get(sim)->membership;

    for (uint64_t peer = 1; peer <= sim->node_count; peer++) {
        if (peer != out)
            rep_sim_cut(sim, out, peer, peer == in || sim_random_chance(&sim->random, 800));
        if (peer != in && peer != out)
            rep_sim_cut(sim, in, peer, sim_random_chance(&sim->random, 200));
    }
    sim->nodes[out - 1].blind = sim_random_chance(&sim->random, 500);
    sim->nodes[in - 1].blind = false;
    if (!membership_has(&m, in))
        return;
    rep_sim_record(sim, in, &m);
    if (turns > 0)
        sim_queue_push(&sim->queue, &(struct sim_event){ .at_ms = sim->now_ms + between(sim, 2, 30),
                                                         .kind = SIM_DUEL,
                                                         .node = in,
                                                         .from = out,
                                                         .number = turns - 1 });
}

static void duel_begin(struct rep_sim *sim)
{
    uint64_t in = any_member(sim);
    uint64_t out = any_member(sim);

    if (in != out)
        duel(sim, out, in, between(sim, 2, 8));
}

/* Two nodes lose each other while everybody else reaches both. */
static void cut_link(struct rep_sim *sim)
{
    uint32_t a = (uint32_t)between(sim, 0, sim->node_count - 1);
    uint32_t b = (uint32_t)between(sim, 0, sim->node_count - 1);

    sim->nodes[a].blind = sim_random_chance(&sim->random, 500);
    if (a != b)
        rep_sim_cut(sim, a + 1, b + 1, true);
}

/* The owner loses the new owner, or more, and goes on with those it still reaches. */
static void depose(struct rep_sim *sim)
{
    uint64_t heir = any_member(sim);

    for (uint32_t i = 0; i < sim->node_count; i++) {
        struct sim_node *node = &sim->nodes[i];
        if (node->id == heir || node->rep == NULL || rep_role(node->rep) != REP_OWNER)
            continue;
        node->blind = true;
        rep_sim_cut(sim, node->id, heir, true);
        for (uint64_t peer = 1; peer <= sim->node_count; peer++)
            if (peer != node->id && sim_random_chance(&sim->random, 300))
                rep_sim_cut(sim, node->id, peer, true);
    }
    if (sim_random_chance(&sim->random, 400)) {
        /* The members answer the heir while their disks are slow, and forget. */
        sim->faults.crash_per_thousand = 80;
        sim->faults.drop_per_thousand = 0;
        for (uint32_t i = 0; i < sim->node_count; i++)
            sim->nodes[i].slow_ms = i + 1 == heir ? 0 : between(sim, 0, 100);
    }
    struct membership m = record_get(sim)->membership;
    rep_sim_record(sim, heir, &m);
}

static void crash(struct rep_sim *sim, struct sim_node *node)
{
    if (node->rep == NULL)
        return;
    rep_sim_crash(sim, node->id);
    uint64_t down_ms = between(sim, 1, sim_random_chance(&sim->random, 400) ? 10 : 400);
    sim_queue_push(&sim->queue, &(struct sim_event){ .at_ms = sim->now_ms + down_ms,
                                                     .kind = SIM_RESTART,
                                                     .node = node->id });
}

static void cut_log(struct rep_sim *sim, struct sim_node *node)
{
    if (node->rep == NULL)
        return;
    uint64_t index = node->applied.index;
    if (index > sim_disk_last_index(&node->disk))
        index = sim_disk_last_index(&node->disk);
    sim->counts.cuts++;
    sim_disk_checkpoint(&node->disk, index);
    if (!sim_random_chance(&sim->random, 100) && rep_retain_index(node->rep) < index)
        index = rep_retain_index(node->rep);
    sim_disk_cut(&node->disk, index);
}

static void wipe(struct rep_sim *sim, struct sim_node *node)
{
    if (sim->counts.wipes > 0)
        return;
    crash(sim, node);
    if (node->rep == NULL)
        rep_sim_wipe(sim, node->id);
}

static void weather(struct rep_sim *sim)
{
    bool rough = sim_random_chance(&sim->random, 500);

    sim->faults.drop_per_thousand = rough ? (uint32_t)between(sim, 0, 300) : 0;
    sim->faults.duplicate_per_thousand = rough ? (uint32_t)between(sim, 0, 200) : 0;
    sim->faults.delay_ms_max = rough ? between(sim, 1, 150) : between(sim, 1, 4);
    sim->faults.sync_ms_max = rough ? between(sim, 1, 80) : between(sim, 1, 5);
    sim->faults.apply_ms_max = rough ? between(sim, 0, 50) : 0;
    sim->faults.crash_per_thousand =
        sim_random_chance(&sim->random, 300) ? (uint32_t)between(sim, 0, 40) : 0;
    for (uint32_t i = 0; i < sim->node_count; i++)
        sim->nodes[i].slow_ms = sim_random_chance(&sim->random, 200) ? between(sim, 1, 150) : 0;
}

static void trouble(struct rep_sim *sim)
{
    struct sim_node *node = any_node(sim);
    uint64_t dice = between(sim, 0, 99);

    if (dice < 18)
        crash(sim, node);
    else if (dice < 30)
        partition(sim);
    else if (dice < 36)
        cut_link(sim);
    else if (dice < 42)
        depose(sim);
    else if (dice < 46)
        duel_begin(sim);
    else if (dice < 54)
        promote_any(sim);
    else if (dice < 66)
        change_members(sim);
    else if (dice < 78)
        weather(sim);
    else if (dice < 92)
        cut_log(sim, node);
    else if (dice < 97)
        node->skew_ms = (int64_t)between(sim, 0, 6000) - 3000;
    else if (sim_random_chance(&sim->random, 100))
        wipe(sim, node);
}

static void on_event(struct rep_sim *sim, const struct sim_event *event)
{
    switch ((enum sim_kind)event->kind) {
    case SIM_CLIENT:
        if (!sim->healing) {
            client(sim);
            again(sim, SIM_CLIENT, between(sim, 1, 8));
        }
        break;
    case SIM_TROUBLE:
        if (!sim->healing) {
            trouble(sim);
            /* Often the next one strikes while the last is being dealt with. */
            again(sim, SIM_TROUBLE,
                  between(sim, 1, sim_random_chance(&sim->random, 400) ? 12 : sim->trouble_ms_max));
        }
        break;
    case SIM_CRASH: {
        struct sim_node *node = &sim->nodes[event->node - 1];
        if (!sim->healing && event->life == node->life)
            crash(sim, node);
        break;
    }
    case SIM_DUEL:
        if (!sim->healing)
            duel(sim, event->node, event->from, event->number);
        break;
    case SIM_MONITOR:
        monitor(sim);
        again(sim, SIM_MONITOR, MONITOR_MS);
        break;
    default:
        CHECK(false); /* Not an event of chaos. */
    }
}

void rep_sim_chaos_begin(struct rep_sim *sim, uint64_t seed)
{
    struct sim_random random = { seed };
    uint32_t members = (uint32_t)sim_random_between(&random, 3, 5);

    rep_sim_init(sim, seed, members + SPARES);
    sim->chaos = on_event;
    sim->limits.append_entries_max = 1u << between(sim, 0, 5);
    sim->limits.inflight_entries_max = 1u << between(sim, 2, 7);
    sim->limits.append_bytes_max = 4096;
    sim->limits.recent_bytes_max = 4096;
    sim->limits.clock_ahead_ms_max = 2000;
    for (uint32_t i = 0; i < sim->node_count; i++) {
        rep_sim_crash(sim, i + 1); /* To start again under these limits. */
        rep_sim_restart(sim, i + 1);
    }
    sim->counts = (struct sim_counts){ 0 };
    sim->trouble_ms_max = between(sim, 15, 300);
    struct membership m = rep_sim_members(1, members);
    rep_sim_record(sim, 1, &m);
    again(sim, SIM_CLIENT, 1);
    again(sim, SIM_TROUBLE, sim->trouble_ms_max);
    again(sim, SIM_MONITOR, MONITOR_MS);
}

/* ---- Healing ---- */

static void calm(struct rep_sim *sim)
{
    sim->healing = true;
    sim->faults = (struct sim_faults){ .delay_ms_max = 3, .sync_ms_max = 3 };
    for (uint32_t a = 0; a < sim->node_count; a++) {
        sim->nodes[a].skew_ms = 0;
        sim->nodes[a].blind = false;
        sim->nodes[a].slow_ms = 0;
        for (uint32_t b = 0; b < sim->node_count; b++)
            sim->cut[a][b] = false;
        if (sim->nodes[a].rep == NULL)
            rep_sim_restart(sim, a + 1);
    }
}

static struct sim_node *serving_node(struct rep_sim *sim)
{
    for (uint32_t i = 0; i < sim->node_count; i++)
        if (serves(sim, &sim->nodes[i]))
            return &sim->nodes[i];
    return NULL;
}

/* A write is acknowledged, a read answered, and every member holds the same. */
static bool serves_once(struct rep_sim *sim, struct sim_node *node)
{
    uint64_t reads_before = sim->reads_answered;
    uint64_t acknowledged_before = sim->acknowledged_index;

    if (rep_sim_propose(sim, node->id, "after the storm") != ERR_OK)
        return false;
    rep_sim_run(sim, 200);
    if (!serves(sim, node) || sim->acknowledged_index == acknowledged_before)
        return false;
    if (rep_sim_read(sim, node->id) != ERR_OK)
        return false;
    rep_sim_run(sim, 200);
    return sim->reads_answered > reads_before && rep_sim_converged(sim);
}

bool rep_sim_heal(struct rep_sim *sim)
{
    uint64_t until_ms = sim->now_ms + HEAL_MS_MAX;

    calm(sim);
    while (sim->now_ms < until_ms && sim->failure[0] == '\0') {
        rep_sim_run(sim, 100);
        struct sim_node *node = serving_node(sim);
        if (node != NULL && serves_once(sim, node))
            return sim->failure[0] == '\0';
    }
    rep_sim_fail(sim, "the healed shard does not serve and converge");
    return false;
}
