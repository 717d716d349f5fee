/* Who holds a shard changes: nodes come, go for good, are drained and removed; shards are moved.
 * In some runs; a node that goes and one that comes are a disk that was wiped. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/check.h"
#include "tests/sim/sim.h"

#define REPLICAS 3u

void members_choose(struct sim *sim)
{
    sim->replicas = sim->node_count;
    sim->first_nodes = sim->node_count;
    if (sim->node_count < REPLICAS || sim_without(sim, WITHOUT_members) ||
        sim->switches.nodes > 0 || (sim->seed * 0x9e3779b97f4a7c15u) >> 56 >= 96)
        return;
    sim->replicas = REPLICAS;
    sim->node_count = SIM_NODES_MAX;
    sim->members_ms = 300 + (uint32_t)(sim->seed % 900);
    sim_later(sim, sim->members_ms, &(struct sim_event){ .kind = EV_MEMBERS });
}

/* Whether it may hold a shard for good. */
static bool is_kept(const struct sim_node *node)
{
    return node->came && !node->gone && !node->removed;
}

static uint32_t kept_count(const struct sim *sim)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < sim->node_count; i++)
        count += is_kept(&sim->nodes[i]);
    return count;
}

static bool find_record(const struct sim *sim, uint32_t shard, struct shard_record *ret_record)
{
    struct cluster_key key = cluster_key_shard(SIM_CLUSTER, shard);
    const struct etcd_kv *kv = etcd_find(sim, cluster_key_slice(&key));

    return kv != NULL && etcd_shard_record(sim, shard, &kv->value, ret_record) == ERR_OK;
}

/* ---- what happens ---- */
static bool come(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->node_count; i++) {
        struct sim_node *node = &sim->nodes[i];
        if (node->came)
            continue;
        sim->counts.nodes_come++;
        node->came = true;
        node_start(sim, node);
        return true;
    }
    return false;
}

static bool etcd_is_there(const struct sim *sim)
{
    return sim->etcd.down_until_ms <= sim->now_ms;
}

static void wish_node(struct sim *sim, const struct sim_node *node, enum node_wish_kind kind)
{
    struct cluster_key key = cluster_key_node_wish(SIM_CLUSTER, node->id);
    struct node_wish wish = { kind };
    struct buf value = { 0 };

    node_wish_encode(&wish, &value);
    etcd_put(sim, cluster_key_slice(&key), buf_slice(&value), 0);
    buf_deinit(&value);
}

static void remove_node(struct sim *sim, struct sim_node *node)
{
    sim->counts.nodes_removed++;
    sim_say(sim, "operator removes node %u", node->id);
    node->removed = true;
    wish_node(sim, node, NODE_REMOVE);
}

static void drain_node(struct sim *sim, struct sim_node *node)
{
    struct cluster_key key = cluster_key_node_wish(SIM_CLUSTER, node->id);

    if (!is_kept(node))
        return;
    if (etcd_find(sim, cluster_key_slice(&key)) != NULL) {
        sim_say(sim, "operator undrains node %u", node->id);
        etcd_remove(sim, cluster_key_slice(&key));
        return;
    }
    sim->counts.nodes_drained++;
    sim_say(sim, "operator drains node %u", node->id);
    wish_node(sim, node, NODE_DRAIN);
}

static void move_shard(struct sim *sim, uint32_t shard, const struct sim_node *to)
{
    struct cluster_key key = cluster_key_shard_wish(SIM_CLUSTER, shard);
    struct shard_record record;
    struct buf value = { 0 };

    if (!is_kept(to) || !find_record(sim, shard, &record) ||
        shard_record_has_member(&record, to->id))
        return;
    struct shard_wish wish = { .member_count = record.member_count };

    memcpy(wish.members, record.members, sizeof wish.members);
    wish.members[sim_between(sim, 0, wish.member_count - 1)] = to->id;
    sim->counts.shards_moved++;
    sim_say(sim, "operator moves s%u to node %u", shard, to->id);
    shard_wish_encode(&wish, &value);
    etcd_put(sim, cluster_key_slice(&key), buf_slice(&value), 0);
    buf_deinit(&value);
}

/* What the record says is so: until an owner has served under it, it is the members of the one
 * before who must not be lost. */
static bool is_in_force(const struct sim *sim, uint32_t shard, const struct shard_record *record)
{
    return record->config == sim->served_config[shard];
}

/* A move that was asked for while a member was away keeps that many: two, who cannot spare one. */
static bool is_wished_short(const struct sim *sim, uint32_t shard)
{
    struct cluster_key key = cluster_key_shard_wish(SIM_CLUSTER, shard);
    const struct etcd_kv *kv = etcd_find(sim, cluster_key_slice(&key));
    struct shard_wish wish;

    return kv != NULL && shard_wish_decode(buf_slice(&kv->value), &wish, NULL) == ERR_OK &&
           wish.member_count < sim->replicas;
}

/* No holder of the shard has a flipped bit or is gone, and no member changes; but it may be that
 * very node that learns. */
bool members_spare(const struct sim *sim, uint32_t shard, const struct sim_node *node)
{
    struct shard_record record;

    if (sim->restored) /* etcd does not say who holds what. */
        return false;
    if (sim->wrong_shard == shard + 1) /* One gives no rows: it is as good as lost. */
        return false;
    if (sim->node_count < 3 || !find_record(sim, shard, &record) || record.phase != SHARD_STABLE ||
        record.member_count < sim->replicas || !is_in_force(sim, shard, &record) ||
        is_wished_short(sim, shard))
        return false;
    if (record.learner != 0 ? record.learner != node->id
                            : !shard_record_has_member(&record, node->id))
        return false;
    for (uint32_t i = 0; i < sim->node_count; i++) {
        const struct sim_node *other = &sim->nodes[i];
        if (shard_record_has_member(&record, other->id) &&
            (other->gone || slot_rots(&other->slots[shard])))
            return false;
    }
    return true;
}

/* A majority of every shard must stay, disks intact: one at a time, and no other is damaged. */
static bool may_go(const struct sim *sim, const struct sim_node *node)
{
    struct shard_record record;

    if (sim->restored) /* etcd does not say who holds what. */
        return false;
    if (rot_anywhere(sim) || sim->wrong_shard > 0 || !node->up || !is_kept(node) ||
        kept_count(sim) <= sim->replicas)
        return false;
    for (uint32_t i = 0; i < sim->node_count; i++) {
        const struct sim_node *other = &sim->nodes[i];
        for (uint32_t shard = 0; other->gone && shard < sim->shard_count; shard++) {
            if (!find_record(sim, shard, &record) || record.learner == other->id ||
                shard_record_has_member(&record, other->id))
                return false; /* A learner may be a member before anybody hears that it is gone. */
        }
    }
    for (uint32_t shard = 0; shard < sim->shard_count; shard++) {
        if (!find_record(sim, shard, &record) || record.member_count < sim->replicas ||
            !is_in_force(sim, shard, &record) || is_wished_short(sim, shard))
            return false;
    }
    return true;
}

static void go(struct sim *sim, struct sim_node *node)
{
    if (!may_go(sim, node))
        return;
    sim->counts.nodes_gone++;
    sim_say(sim, "node %u   goes for good, with its disk", node->id);
    node_crash(sim, node);
    node->gone = true;
    if (sim_chance(sim, 500))
        remove_node(sim, node);
}

static void make_one(struct sim *sim)
{
    struct sim_node *node = &sim->nodes[sim_between(sim, 0, sim->node_count - 1)];

    switch (sim_between(sim, 0, 6)) {
    case 0:
        (void)come(sim);
        break;
    case 1:
        if (is_kept(node) && kept_count(sim) > sim->replicas)
            remove_node(sim, node);
        break;
    case 2:
        drain_node(sim, node);
        break;
    case 3:
        go(sim, node);
        break;
    default:
        move_shard(sim, (uint32_t)sim_between(sim, 0, sim->shard_count - 1), node);
        break;
    }
}

/* Numbered with the other troubles, so that shrinking can leave each out. */
void members_event(struct sim *sim)
{
    struct sim_random kept = sim->random;

    if (sim->healing)
        return;
    sim->random.state =
        (sim->seed * 0xd1342543de82ef95u) ^ (sim->members_made * 0x9e3779b97f4a7c15u);
    sim_later(sim, sim_between(sim, 1, sim->members_ms), &(struct sim_event){ .kind = EV_MEMBERS });
    sim->members_made++;
    if (etcd_is_there(sim))
        make_one(sim);
    sim->random = kept;
}

/* An operator sees to it in the end: nodes that are gone are removed, none is drained any more, and
 * there are nodes enough. */
void members_heal(struct sim *sim)
{
    if (sim->members_ms == 0)
        return;
    for (uint32_t i = 0; i < sim->node_count; i++) {
        struct sim_node *node = &sim->nodes[i];
        struct cluster_key key = cluster_key_node_wish(SIM_CLUSTER, node->id);
        if (node->gone && !node->removed)
            remove_node(sim, node);
        else if (is_kept(node) && etcd_find(sim, cluster_key_slice(&key)) != NULL)
            drain_node(sim, node); /* No longer: it must be there for the others. */
    }
    while (kept_count(sim) < sim->replicas + 1 && come(sim))
        ;
}

void members_again(struct sim *sim)
{
    if (sim->members_ms == 0)
        return;
    for (uint32_t i = 0; i < sim->node_count; i++) {
        struct sim_node *node = &sim->nodes[i];
        struct cluster_key key = cluster_key_node_wish(SIM_CLUSTER, node->id);
        if (node->removed)
            wish_node(sim, node, NODE_REMOVE);
        else if (sim->healing && etcd_find(sim, cluster_key_slice(&key)) != NULL)
            etcd_remove(sim, cluster_key_slice(&key)); /* A drain that the backup had. */
    }
}

/* ---- how it must end ---- */
static bool slot_is_empty(const struct slot *slot)
{
    return !slot->damaged && !slot->installing && slot->db.count == 0 &&
           (slot->shard == NULL || rep_last_index(shard_rep(slot->shard)) == 0);
}

bool members_settled(const struct sim *sim, uint32_t shard)
{
    struct cluster_key key = cluster_key_shard_wish(SIM_CLUSTER, shard);
    struct shard_record record;

    if (!find_record(sim, shard, &record))
        return false;
    if (record.phase != SHARD_STABLE || record.learner != 0 ||
        record.member_count != sim->replicas || etcd_find(sim, cluster_key_slice(&key)) != NULL)
        return false;
    for (uint32_t i = 0; i < sim->node_count; i++) {
        const struct sim_node *node = &sim->nodes[i];
        bool member = shard_record_has_member(&record, node->id);
        if (member && (node->gone || node->removed))
            return false;
        if (!member && node->up && !slot_is_empty(&node->slots[shard]))
            return false;
    }
    return true;
}

uint32_t members_learner(const struct sim *sim, uint32_t shard)
{
    struct shard_record record;

    return find_record(sim, shard, &record) ? (uint32_t)record.learner : 0;
}

bool members_hold(const struct sim *sim, uint32_t shard, const struct sim_node *node)
{
    struct shard_record record;

    return find_record(sim, shard, &record) && shard_record_has_member(&record, node->id);
}
