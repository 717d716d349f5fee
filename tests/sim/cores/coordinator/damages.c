/*
 * Replicas that their nodes found damaged (coordinator/core/repair.c, ownership.c;
 * docs/membership.md): none is made an owner, learns or counts in a majority while another could;
 * one is sent away only while all others are there, whole and near; and all are whole in the end.
 */
#include <string.h>

#include "coordinator/core/world.h"
#include "runtime/base/check.h"
#include "runtime/cluster/shard_change.h"
#include "tests/sim/cores/rsim.h"

#define NODES   5u
#define SHARDS  8u
#define CLUSTER "test"
#define WHOLE   UINT32_MAX
#define WAIT_MS 200u
#define LAG_MAX 100u

struct patient {
    bool up, removed;
    uint64_t life, born_ms;
    uint32_t damaged; /* That shard; WHOLE: none. */
};

struct ward {
    struct rsim *sim;
    struct world *world;
    struct patient nodes[NODES + 1];
    struct shard_record records[SHARDS]; /* Epoch 0: there is none. */
    uint64_t repaired[SHARDS];           /* By the wish that stands; 0: none. */
    uint32_t begun;
    uint64_t lag_ms; /* When the others last came to lag as they do. */
};

static bool is_whole(const struct ward *w, uint64_t id, uint32_t shard)
{
    return w->nodes[id].up && w->nodes[id].damaged != shard;
}

static uint32_t wholes(const struct ward *w, uint32_t shard, const uint64_t *ids, uint32_t count)
{
    uint32_t whole = 0;

    for (uint32_t i = 0; i < count; i++)
        whole += is_whole(w, ids[i], shard);
    return whole;
}

static uint32_t damaged_members(const struct ward *w, uint32_t shard)
{
    const struct shard_record *r = &w->records[shard];
    uint32_t count = 0;

    for (uint32_t i = 0; i < r->member_count; i++)
        count += w->nodes[r->members[i]].up && w->nodes[r->members[i]].damaged == shard;
    return count;
}

/* ---- what is written ---- */

static void owner_judged(struct ward *w, uint32_t shard, const struct shard_record *next)
{
    const struct shard_record *was = &w->records[shard];
    uint32_t others = wholes(w, shard, next->members, next->member_count);

    if (next->owner == was->owner && (next->config != was->config || next->learner != 0))
        return; /* A change of members: it owns the shard already. */
    PROMISE(w->sim, is_whole(w, next->owner, shard) || others == 0,
            "shard %u is given to node %llu, whose replica is damaged, and %u are whole", shard,
            (unsigned long long)next->owner, others);
    w->sim->counts.owners_spared += next->owner != was->owner && w->nodes[was->owner].up &&
                                    w->nodes[was->owner].damaged == shard;
}

/* Of all others. */
static void sent_away_judged(struct ward *w, uint32_t shard, uint64_t leaving)
{
    const struct shard_record *was = &w->records[shard];

    PROMISE(w->sim, w->nodes[leaving].damaged == shard, "a replica that is whole is sent away");
    PROMISE(w->sim, was->member_count >= 3, "one of %u replicas is sent away", was->member_count);
    /* The owner's word counts for report_valid_ms. */
    PROMISE(w->sim,
            w->world->member_lag <= LAG_MAX ||
                w->world->now_ms - w->lag_ms <= w->world->limits.report_valid_ms,
            "sent away, and the others lag by %llu", (unsigned long long)w->world->member_lag);
    for (uint32_t i = 0; i < was->member_count; i++) {
        uint64_t id = was->members[i];

        PROMISE(w->sim, id == leaving || is_whole(w, id, shard),
                "shard %u: node %llu is sent away, and %llu is not whole", shard,
                (unsigned long long)leaving, (unsigned long long)id);
        PROMISE(w->sim, w->world->now_ms - w->nodes[id].born_ms >= WAIT_MS,
                "a replica is sent away %llu ms after a member came up",
                (unsigned long long)(w->world->now_ms - w->nodes[id].born_ms));
    }
    w->sim->counts.replicas_sent_away++;
}

static void members_judged(struct ward *w, uint32_t shard, const struct shard_record *next)
{
    const struct shard_record *was = &w->records[shard];

    if (next->phase == SHARD_JOINT && was->phase != SHARD_JOINT) {
        PROMISE(w->sim,
                2 * wholes(w, shard, next->members, next->member_count) > next->member_count &&
                    2 * wholes(w, shard, next->new_members, next->new_member_count) >
                        next->new_member_count,
                "shard %u: a joint phase begins without both majorities", shard);
        if (next->new_member_count < next->member_count) {
            for (uint32_t i = 0; i < next->member_count; i++) {
                uint64_t id = next->members[i];
                if (!replica_is_among(next->new_members, next->new_member_count, id) &&
                    !w->nodes[id].removed)
                    sent_away_judged(w, shard, id);
            }
        }
    }
    if (next->learner != 0 && was->learner == 0) {
        PROMISE(w->sim, is_whole(w, next->learner, shard) && !w->nodes[next->learner].removed,
                "shard %u: node %llu learns, which is down, damaged or removed", shard,
                (unsigned long long)next->learner);
        w->sim->counts.replicas_back += next->learner == w->repaired[shard];
    }
    if (next->phase == SHARD_STABLE)
        PROMISE(w->sim, next->member_count >= 2, "shard %u has %u replicas", shard,
                next->member_count);
}

static void wish_judged(struct ward *w, uint32_t shard, const struct coord_write *write)
{
    struct shard_wish wish;
    uint32_t open = 1;

    if (write->remove) {
        w->repaired[shard] = 0;
        return;
    }
    PROMISE(w->sim, shard_wish_decode(write->value, &wish, NULL) == ERR_OK && wish.repair != 0,
            "a wish is made that is no repair");
    for (uint32_t i = 0; i < SHARDS; i++) {
        open += w->repaired[i] != 0;
        PROMISE(w->sim, w->repaired[i] != wish.repair,
                "shards %u and %u of node %llu are repaired at a time", i, shard,
                (unsigned long long)wish.repair);
    }
    PROMISE(w->sim, open <= w->world->limits.changes_max, "%u repairs at a time", open);
    PROMISE(w->sim, w->nodes[wish.repair].damaged == shard && damaged_members(w, shard) == 1,
            "shard %u is repaired, and %u replicas are damaged", shard, damaged_members(w, shard));
    PROMISE(w->sim, !w->nodes[wish.repair].removed, "a removed node is repaired");
    w->repaired[shard] = wish.repair;
    w->begun++;
}

static void wrote(void *user, const struct coord_write *write)
{
    struct ward *w = user;
    struct cluster_key_parts parts = cluster_key_parse(CLUSTER, write->key);
    struct shard_record next;

    if (parts.kind == CLUSTER_KEY_SHARD_WISH)
        wish_judged(w, parts.shard, write);
    if (parts.kind != CLUSTER_KEY_SHARD)
        return;
    CHECK(!write->remove && shard_record_decode(write->value, &next, NULL) == ERR_OK);
    if (w->records[parts.shard].epoch > 0) {
        const struct shard_record *was = &w->records[parts.shard];

        PROMISE(w->sim, next.epoch == was->epoch + 1 && next.config >= was->config,
                "shard %u: epoch %llu after %llu", parts.shard, (unsigned long long)next.epoch,
                (unsigned long long)was->epoch);
        owner_judged(w, parts.shard, &next);
        members_judged(w, parts.shard, &next);
    }
    w->records[parts.shard] = next;
}

/* ---- what happens ---- */

static void tell(struct ward *w, uint64_t id)
{
    world_node_damaged(w->world, id, w->nodes[id].life, w->nodes[id].damaged);
}

static void node_up(struct ward *w, uint64_t id)
{
    struct patient *node = &w->nodes[id];

    node->up = true;
    node->life++;
    node->born_ms = w->world->now_ms;
    tell(w, id);
}

static void node_down(struct ward *w, uint64_t id)
{
    w->nodes[id].up = false;
    world_node_down(w->world, id);
}

/* A node drops a damaged replica that its shard's record does not name, and says so. */
static void drop_replicas(struct ward *w)
{
    for (uint64_t id = 1; id <= NODES; id++) {
        struct patient *node = &w->nodes[id];

        if (!node->up || node->damaged == WHOLE)
            continue;
        const struct shard_record *r = &w->records[node->damaged];

        if (shard_record_has_member(r, id) || r->learner == id)
            continue;
        node->damaged = WHOLE;
        tell(w, id);
    }
}

static void pass(struct ward *w, uint64_t ms)
{
    for (uint64_t end_ms = w->world->now_ms + ms; w->world->now_ms < end_ms;) {
        world_run(w->world, 100);
        drop_replicas(w);
    }
}

/* Mostly of a shard that it holds. */
static void damage(struct ward *w, uint64_t id)
{
    uint32_t shard = (uint32_t)rsim_between(w->sim, 0, SHARDS - 1);

    if (w->nodes[id].damaged != WHOLE)
        return;
    for (uint32_t i = 0; i < SHARDS && rsim_chance(w->sim, 90); i++) {
        uint32_t candidate = (shard + i) % SHARDS;

        if (!shard_record_has_member(&w->records[candidate], id))
            continue;
        w->nodes[id].damaged = candidate;
        break;
    }
    if (!w->nodes[id].up)
        return;
    if (rsim_chance(w->sim, 50)) { /* It finds it when it starts. */
        node_down(w, id);
        node_up(w, id);
    } else {
        tell(w, id);
    }
}

static void turn(struct ward *w)
{
    uint64_t what = rsim_between(w->sim, 0, 99), id = rsim_between(w->sim, 1, NODES);
    uint32_t up = 0;

    for (uint64_t other = 1; other <= NODES; other++)
        up += w->nodes[other].up;
    if (what < 40) {
        damage(w, id);
    } else if (what < 65) {
        if (!w->nodes[id].up)
            node_up(w, id);
        else if (up > 3)
            node_down(w, id);
    } else if (what < 80) {
        w->world->member_lag = rsim_chance(w->sim, 50) ? rsim_about(w->sim, LAG_MAX) : 0;
        w->lag_ms = w->world->now_ms;
    } else if (what < 84 && id > 3 && !w->nodes[4].removed && !w->nodes[5].removed) {
        w->nodes[id].removed = true;
        world_wish_node(w->world, id, NODE_REMOVE);
    } else if (what < 90) {
        world_refresh(w->world);
    }
}

/* ---- at rest ---- */

/* Too many for those that are whole to go on, or two, which are left alone. */
static bool is_beyond_repair(const struct ward *w, uint32_t shard)
{
    const struct shard_record *r = &w->records[shard];

    return damaged_members(w, shard) > 1 ||
           2 * wholes(w, shard, r->members, r->member_count) <= r->member_count ||
           (r->phase == SHARD_JOINT &&
            2 * wholes(w, shard, r->new_members, r->new_member_count) <= r->new_member_count);
}

/* All are up; where the coordinator can do nothing an operator puts a replica right. */
static void rest(struct ward *w)
{
    w->world->member_lag = 0;
    for (uint64_t id = 1; id <= NODES; id++) {
        if (!w->nodes[id].up)
            node_up(w, id);
    }
    for (uint64_t id = 1; id <= NODES; id++) {
        if (w->nodes[id].damaged != WHOLE && is_beyond_repair(w, w->nodes[id].damaged)) {
            w->nodes[id].damaged = WHOLE;
            tell(w, id);
        }
    }
    pass(w, 90000);
}

static void rest_check(struct ward *w)
{
    struct coord_stats stats = world_stats(w->world);

    PROMISE(w->sim, stats.replicas_damaged == 0 && stats.repairs_open == 0,
            "%llu replicas are damaged, %llu repairs are open",
            (unsigned long long)stats.replicas_damaged, (unsigned long long)stats.repairs_open);
    PROMISE(w->sim, stats.repairs_done + stats.repairs_given_up == w->begun,
            "%u repairs begin, %llu are done and %llu given up", w->begun,
            (unsigned long long)stats.repairs_done, (unsigned long long)stats.repairs_given_up);
    for (uint32_t i = 0; i < SHARDS; i++) {
        const struct shard_record *r = &w->records[i];

        PROMISE(w->sim, !shard_change_is_open(r) && r->member_count == 3,
                "shard %u does not come to rest: %u replicas", i, r->member_count);
        PROMISE(w->sim, wholes(w, i, r->members, r->member_count) == 3,
                "shard %u has a replica that is not whole", i);
    }
}

void room_damages(struct rsim *sim)
{
    struct ward w = { .sim = sim, .world = world_new() };
    bool exchanges = sim->seed % 4 == 0; /* Of shards, for their loads. */

    w.world->watch = (struct world_watch){ .user = &w, .wrote = wrote };
    w.world->limits.repair_wait_ms = WAIT_MS;
    w.world->limits.change_lag_entries = LAG_MAX;
    w.world->limits.change_abort_ms = 3000;
    w.world->limits.changes_max = (uint32_t)rsim_between(sim, 1, 4);
    if (exchanges) {
        w.world->limits.claim_calm_ms = 200;
        w.world->limits.rebalance_up_ms = 100;
        w.world->limits.load_ask_ms = 500;
        w.world->limits.load_exchange_ms = (uint32_t)rsim_between(sim, 300, 3000);
    }
    world_replace_coordinator(w.world);
    for (uint64_t id = 1; id <= NODES; id++) {
        w.nodes[id].damaged = WHOLE;
        node_up(&w, id);
    }
    world_elect(w.world);
    world_run(w.world, 3000);
    for (uint32_t i = 0; i < SHARDS && exchanges; i++)
        w.world->rates[i] = rsim_between(sim, 0, 9) * 2000;
    for (uint32_t i = 0; i < 20; i++) {
        turn(&w);
        pass(&w, rsim_chance(sim, 70) ? rsim_between(sim, 20, 800) : rsim_between(sim, 1000, 8000));
    }
    rest(&w);
    rest_check(&w);
    world_free(w.world);
}
