/* etcd is restored from a backup, in some runs; an operator accepts that some time later, as the
 * router does for `holdfast admin accept-etcd-restore`. */
#include <string.h>

#include "router/core/restore_plan.h"
#include "runtime/base/check.h"
#include "tests/sim/sim.h"

#define KEYS_MAX     4096u
#define RESTORE_RUNS 64u /* Of 256. */

void restore_choose(struct sim *sim)
{
    if (sim_without(sim, WITHOUT_restores) ||
        (sim->seed * 0xd1342543de82ef95u) >> 56 >= RESTORE_RUNS)
        return;
    sim->restore_ms = 400 + (uint32_t)(sim->seed % 1500);
    sim_later(sim, 500 + sim->restore_ms, &(struct sim_event){ .kind = EV_RESTORE });
}

/* ---- what nodes know ---- */
static void tell_shard(const struct sim_node *node, uint32_t number,
                       Holdfast__Internal__V1__KnownShard *known)
{
    const struct slot *slot = &node->slots[number];

    holdfast__internal__v1__known_shard__init(known);
    known->shard = number;
    known->mute = slot->damaged || slot->installing;
    if (slot->shard == NULL)
        return;
    const struct rep *rep = shard_rep(slot->shard);
    const struct membership *membership = rep_membership(rep);

    known->epoch = rep_epoch(rep);
    known->config = rep_config(rep);
    known->owner = rep_owner(rep);
    known->member_config = membership->config;
    known->members = (uint64_t *)(uintptr_t)membership->members;
    known->n_members = membership->count;
    known->new_members = (uint64_t *)(uintptr_t)membership->new_members;
    known->n_new_members = membership->new_count;
    known->generation = rep_generation(rep);
    known->mute |= rep_is_mute(rep);
}

void restore_status(struct sim *sim, const struct sim_node *node, struct buf *out)
{
    Holdfast__Internal__V1__GetNodeStatusResponse response =
        HOLDFAST__INTERNAL__V1__GET_NODE_STATUS_RESPONSE__INIT;
    Holdfast__Internal__V1__KnownShard known[SIM_SHARDS_MAX];
    Holdfast__Internal__V1__KnownShard *list[SIM_SHARDS_MAX];

    for (uint32_t i = 0; i < sim->shard_count; i++) {
        tell_shard(node, i, &known[i]);
        if (known[i].mute || node->slots[i].shard != NULL)
            list[response.n_known++] = &known[i];
    }
    response.known = list;
    response.generation = sim->mirrors[node->id].generation;
    size_t size = holdfast__internal__v1__get_node_status_response__get_packed_size(&response);

    holdfast__internal__v1__get_node_status_response__pack(&response, buf_reserve(out, size + 1));
    out->size += size;
}

bool restore_is_doubted(const struct sim *sim)
{
    for (uint32_t i = 0; i < sim->node_count; i++) {
        struct cluster_key key = cluster_key_node(SIM_CLUSTER, sim->nodes[i].id);
        const struct etcd_kv *kv = etcd_find(sim, cluster_key_slice(&key));
        struct node_record record;

        if (kv != NULL && node_record_decode(buf_slice(&kv->value), &record, NULL) == ERR_OK &&
            record.doubts != 0 && record.doubts >= etcd_generation(sim))
            return true;
    }
    return false;
}

/* ---- the operator ---- */
static uint32_t ask_nodes(struct sim *sim, struct arena *arena, struct restore_answer *answers)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < sim->node_count; i++) {
        const struct sim_node *node = &sim->nodes[i];
        struct cluster_key key = cluster_key_node(SIM_CLUSTER, node->id);
        struct buf bytes = { 0 };

        if (!node->up || node->paused_until_ms > sim->now_ms || sim->cut[PROC_ROUTER][node->id] ||
            sim->cut[node->id][PROC_ROUTER] || etcd_find(sim, cluster_key_slice(&key)) == NULL)
            continue;
        restore_status(sim, node, &bytes);
        struct slice kept = arena_copy(arena, buf_slice(&bytes));
        buf_deinit(&bytes);
        answers[count++] = (struct restore_answer){
            node->id,
            holdfast__internal__v1__get_node_status_response__unpack(NULL, kept.size, kept.data)
        };
    }
    return count;
}

static bool all_placed(const struct sim *sim)
{
    for (uint32_t i = 0; i < sim->shard_count; i++) {
        struct cluster_key key = cluster_key_shard(SIM_CLUSTER, i);
        if (etcd_find(sim, cluster_key_slice(&key)) == NULL)
            return false;
    }
    return true;
}

/* Of a shard without a record only its holders know that it was placed: those that are there have
 * to answer first, as docs/etcd-restore.md asks. */
static bool all_answer_that_must(const struct sim *sim, uint32_t answer_count)
{
    uint32_t there = 0;

    for (uint32_t i = 0; i < sim->node_count; i++)
        there += sim->nodes[i].came && !sim->nodes[i].gone;
    return all_placed(sim) || answer_count == there;
}

/* No process would go on, although no node knows anything that etcd does not. */
static bool somebody_else_knows(const struct sim *sim)
{
    for (uint32_t proc = PROC_COORD; proc < PROC_SERVER; proc++) {
        if (sim->mirrors[proc].rolled_back)
            return true;
    }
    return false;
}

/* holdfast_coordinator_shards_doubted. */
static bool shards_are_doubted(const struct sim *sim)
{
    for (uint32_t i = 0; i < sim->coord_count; i++) {
        struct coord_stats stats = { 0 };

        if (sim->coords[i].core != NULL)
            coord_stats_get(sim->coords[i].core, &stats);
        if (stats.active && stats.shards_doubted > 0)
            return true;
    }
    return false;
}

/* False: it was interrupted, or something changed meanwhile. */
static bool carry_out(struct sim *sim, const struct restore_plan *plan)
{
    uint32_t until = plan->write_count;

    if (sim_chance(sim, 250)) {
        until = (uint32_t)sim_between(sim, 0, plan->write_count - 1);
        sim->counts.restores_interrupted++;
    }
    for (uint32_t i = 0; i < until; i++) {
        const struct restore_write *write = &plan->writes[i];
        const struct etcd_kv *kv = etcd_find(sim, write->key);

        if (write->revision >= 0 && (kv == NULL ? 0 : kv->mod_revision) != write->revision)
            return false;
        if (write->value.size > 0)
            etcd_put(sim, write->key, write->value, 0);
        else
            etcd_remove(sim, write->key);
        if (write->lease_id != 0)
            etcd_lease_revoke(sim, write->lease_id);
    }
    return until == plan->write_count;
}

static void look_at_members(struct sim *sim, const struct restore_plan *plan)
{
    for (uint32_t i = 0; i < plan->cluster.shard_count; i++) {
        sim->counts.restores_of_members += plan->shards[i].members_differ;
        if (plan->shards[i].next.member_count > 0)
            oracle_accepted(sim, i, &plan->shards[i].next);
    }
}

/* True: there is nothing left to accept. */
static bool accept_restore(struct sim *sim)
{
    struct arena arena = { 0 };
    struct restore_answer answers[SIM_NODES_MAX];
    struct restore_key *keys = arena_alloc(&arena, sizeof *keys * KEYS_MAX);
    Holdfast__V1__ErrorDetail detail;
    struct restore_plan plan;
    struct restore_input input = { .cluster = SIM_CLUSTER,
                                   .keys = keys,
                                   .answers = answers,
                                   .force = somebody_else_knows(sim) || shards_are_doubted(sim),
                                   .arena = &arena };

    input.answer_count = ask_nodes(sim, &arena, answers);
    for (uint32_t i = 0; i < sim->etcd.kv_count; i++) {
        const struct etcd_kv *kv = &sim->etcd.kvs[i];
        if (kv->create_revision > 0)
            keys[input.key_count++] =
                (struct restore_key){ arena_copy(&arena, slice_from_text(kv->key)),
                                      arena_copy(&arena, buf_slice(&kv->value)), kv->mod_revision };
    }
    detail.message = text_lend("shards have no record, and not everybody answers");
    err e = ERR_UNAVAILABLE;
    if (all_answer_that_must(sim, input.answer_count))
        e = restore_plan_make(&input, &plan, &detail);
    bool done = e == ERR_CONFLICT;

    if (e == ERR_UNAVAILABLE) {
        sim->counts.restores_refused++;
        sim_say(sim, "operator is refused: %s", detail.message);
    } else if (e == ERR_OK && carry_out(sim, &plan)) {
        done = true;
        sim->counts.restores_accepted++;
        look_at_members(sim, &plan);
        sim_say(sim, "operator accepts the restored etcd: generation %llu, epochs above %llu",
                (unsigned long long)plan.next.generation,
                (unsigned long long)plan.next.epoch_floor);
    }
    for (uint32_t i = 0; i < input.answer_count; i++)
        holdfast__internal__v1__get_node_status_response__free_unpacked(
            (Holdfast__Internal__V1__GetNodeStatusResponse *)(uintptr_t)answers[i].status, NULL);
    arena_deinit(&arena);
    return done;
}

/* A node that is away may know a newer etcd, too: it says so when it is back, and somebody has to
 * look once more. */
static bool is_over(const struct sim *sim)
{
    return !restore_is_doubted(sim) && !somebody_else_knows(sim) && !shards_are_doubted(sim);
}

/* What took etcd took processes, too. Coordinators come back without memory; some nodes are not
 * there yet when the operator begins. */
static void take_processes(struct sim *sim)
{
    if (!sim_chance(sim, 500))
        return;
    for (uint32_t i = 0; i < sim->coord_count; i++) {
        if (sim->coords[i].core == NULL)
            continue;
        coord_kill(sim, i);
        sim_later(sim, sim_between(sim, 1, 500),
                  &(struct sim_event){ .kind = EV_RESTART, .node = PROC_COORD + i });
    }
    for (uint32_t i = 0; i < sim->node_count; i++) {
        if (!sim->nodes[i].up || !sim_chance(sim, 600))
            continue;
        sim->counts.crashes++;
        node_crash(sim, &sim->nodes[i]);
        sim_later(sim, sim_between(sim, 1, 6000),
                  &(struct sim_event){ .kind = EV_RESTART, .node = sim->nodes[i].id });
    }
}

static void restore(struct sim *sim)
{
    sim->counts.etcd_rolled_back++;
    sim_say(sim, "etcd     is restored from a backup: revision %lld is %lld again",
            (long long)sim->etcd.revision, (long long)sim->etcd.backup.revision);
    etcd_restore(sim);
    sim->restored = true;
    take_processes(sim);
}

/* Not before all shards are placed: what such a backup brings, and who must answer then, is told in
 * docs/etcd-restore.md, "Limits". */
static bool may_back_up(const struct sim *sim)
{
    return etcd_generation(sim) > 0 && all_placed(sim);
}

static void take_step(struct sim *sim)
{
    if (sim->restored) {
        if (accept_restore(sim) && is_over(sim)) {
            sim->restored = false;
            members_again(sim);
        }
    } else if (sim->etcd.backup.kvs != NULL && sim_chance(sim, 600)) {
        restore(sim);
    } else if (may_back_up(sim) && (sim->etcd.backup.kvs == NULL || sim_chance(sim, 300))) {
        etcd_back_up(sim); /* Most are of long ago. */
    }
}

void restore_soon(struct sim *sim)
{
    if (sim->restore_ms > 0)
        sim_later(sim, 1, &(struct sim_event){ .kind = EV_RESTORE, .number = 1 });
}

void restore_event(struct sim *sim, const struct sim_event *event)
{
    if (event->number == 1) {
        if (!sim->restored && !sim->healing && sim->etcd.backup.kvs != NULL &&
            sim->etcd.down_until_ms <= sim->now_ms && sim->restores_made % 2 == 0)
            restore(sim);
        return;
    }
    struct sim_random kept = sim->random;
    bool late = sim->healing && !sim->restored;

    sim->random.state =
        (sim->seed * 0x9e3779b97f4a7c15u) ^ (sim->restores_made * 0xa0761d6478bd642fu);
    sim->restores_made++;
    if (late) {
        if (!is_over(sim))
            sim->restored = true;
    } else if (sim->etcd.down_until_ms <= sim->now_ms) {
        take_step(sim);
    }
    sim_later(sim, sim->healing ? 200 : sim_between(sim, 1, 2 * sim->restore_ms),
              &(struct sim_event){ .kind = EV_RESTORE });
    sim->random = kept;
}
