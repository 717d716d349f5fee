/*
 * What replicas know of records, under a coordinator that was just elected
 * (coordinator/core/word.c; docs/etcd-restore.md): a shard of which a node knows a later record
 * than etcd has is left alone; its members change only once a majority of them has said what it
 * knows; nothing is placed before every node has.
 */
#include <string.h>

#include "runtime/base/check.h"
#include "tests/sim/cores/coordinator/pace.h"

#define NODES    4u /* The last one holds nothing at first. */
#define RETRY_MS 50u

struct jury {
    struct rsim *sim;
    struct pace *p;
    bool told[NODES + 1]; /* In this term. */
    bool placed[PACE_SHARDS];
    struct shard_record records[PACE_SHARDS]; /* At the last look. */
};

static void look(struct jury *j)
{
    for (uint32_t i = 0; i < PACE_SHARDS; i++)
        j->records[i] = world_shard(j->p->world, i);
    pace_clear(j->p);
}

/* A node that has answered knows of more than etcd has, or of another owner. */
static bool is_doubted(const struct jury *j, uint32_t shard)
{
    const struct world *w = j->p->world;
    const struct shard_record *record = &j->records[shard];

    for (uint64_t id = 1; id <= NODES; id++) {
        uint64_t epoch = w->epochs_known[id][shard], owner = w->owners_known[id][shard];

        if (j->told[id] && (epoch > record->epoch || w->configs_known[id][shard] > record->config ||
                            (epoch == record->epoch && owner != 0 && owner != record->owner)))
            return true;
    }
    return false;
}

static bool is_heard(const struct jury *j, uint32_t shard)
{
    const struct shard_record *record = &j->records[shard];
    uint32_t heard = 0;

    for (uint32_t i = 0; i < record->member_count; i++)
        heard += j->told[record->members[i]] && record->members[i] != j->p->world->mute_node;
    return 2 * heard > record->member_count;
}

/* What nodes know: mostly what stands, or less. */
static void know(struct jury *j)
{
    struct world *w = j->p->world;

    for (uint64_t id = 1; id <= NODES; id++) {
        for (uint32_t i = 0; i < PACE_SHARDS; i++) {
            const struct shard_record *record = &j->records[i];

            w->epochs_known[id][i] = record->epoch - rsim_between(j->sim, 0, 1);
            w->owners_known[id][i] = w->epochs_known[id][i] == record->epoch ? record->owner : 0;
            w->configs_known[id][i] = record->config - rsim_between(j->sim, 0, 1);
            if (rsim_chance(j->sim, 5))
                w->epochs_known[id][i] = record->epoch + 1;
            if (rsim_chance(j->sim, 5))
                w->configs_known[id][i] = record->config + 1;
            if (rsim_chance(j->sim, 8))
                w->owners_known[id][i] = rsim_between(j->sim, 0, 3);
        }
    }
    w->mute_node = rsim_chance(j->sim, 50) ? rsim_between(j->sim, 1, NODES) : 0;
    w->deaf_node = rsim_chance(j->sim, 60) ? rsim_between(j->sim, 1, NODES) : 0;
}

static void told_check(struct jury *j)
{
    struct coord_stats stats = world_stats(j->p->world);
    uint32_t doubted = 0;

    for (uint32_t i = 0; i < PACE_SHARDS; i++)
        doubted += is_doubted(j, i);
    PROMISE(j->sim, stats.shards_doubted == doubted, "%u shards are doubted, %llu are told",
            doubted, (unsigned long long)stats.shards_doubted);
    j->sim->counts.records_doubted += doubted;
}

/* Every shard is to move to node 4. */
static void wish_all(struct jury *j)
{
    for (uint32_t i = 0; i < PACE_SHARDS; i++) {
        struct shard_wish wish = { .member_count = 3, .members = { 1, 2, 4 } };

        world_wish_shard(j->p->world, i, &wish);
    }
}

/* Those that are not doubted, and vouched for, have moved; no other was written. */
static void moved_check(struct jury *j, bool whole)
{
    for (uint32_t i = 0; i < PACE_SHARDS; i++) {
        bool due = is_heard(j, i) && !is_doubted(j, i);
        struct shard_record now = world_shard(j->p->world, i);

        if (shard_record_has_member(&j->records[i], 4))
            continue;
        PROMISE(j->sim, due || pace_write_of(j->p, CLUSTER_KEY_SHARD, i) == NULL,
                "shard %u is written, which is %s", i,
                is_doubted(j, i) ? "doubted" : "not vouched for");
        PROMISE(j->sim,
                !due || !whole ||
                    (now.config > j->records[i].config && shard_record_has_member(&now, 4)),
                "shard %u is vouched for, and does not move", i);
        j->sim->counts.changes_vouched += due;
        j->sim->counts.changes_unvouched += !due;
    }
}

/* An owner goes: a shard that is not doubted has another one at once, vouched for or not. */
static void fail_over(struct jury *j)
{
    uint64_t gone = rsim_between(j->sim, 1, 3);

    look(j);
    world_node_down(j->p->world, gone);
    pace_run(j->p, 3);
    for (uint32_t i = 0; i < PACE_SHARDS; i++) {
        bool due = j->records[i].owner == gone && !is_doubted(j, i);

        if (j->records[i].owner == gone)
            PROMISE(j->sim, (world_shard(j->p->world, i).owner != gone) == due,
                    "shard %u, whose owner is gone, is %s", i,
                    due ? "left alone" : "doubted, and written");
    }
}

static void changes(struct rsim *sim)
{
    struct jury j = { .sim = sim, .p = pace_new(sim) };
    struct world *w = j.p->world;

    w->limits.word_retry_ms = RETRY_MS;
    w->limits.changes_max = 16;
    pace_begin(j.p);
    world_node_up(w, 4, 1);
    pace_run(j.p, 5);
    look(&j);
    know(&j);
    w->limits.change_abort_ms = 60000;
    world_replace_coordinator(w);
    for (uint64_t id = 1; id <= NODES; id++)
        j.told[id] = id != w->deaf_node;
    world_elect(w);
    pace_run(j.p, 2);
    told_check(&j);
    wish_all(&j);
    /* Owners that are deaf do not say how a change is. */
    pace_run(j.p, RETRY_MS - 10u);
    moved_check(&j, w->deaf_node == 0);
    w->deaf_node = 0;
    for (uint64_t id = 1; id <= NODES; id++)
        j.told[id] = true;
    pace_run(j.p, 300);
    look(&j);
    pace_run(j.p, 3);
    told_check(&j);
    if (rsim_chance(sim, 50)) {
        w->mute_node = 0;
        pace_run(j.p, 400);
        moved_check(&j, true);
        look(&j);
    }
    fail_over(&j);
    pace_free(j.p);
}

/* A shard without a record is placed once all nodes have said that they know of none. */
static void placements(struct rsim *sim)
{
    struct jury j = { .sim = sim, .p = pace_new(sim) };
    struct world *w = j.p->world;
    bool held = rsim_chance(sim, 20);
    uint32_t known = (uint32_t)rsim_between(sim, 0, 2 * PACE_SHARDS);

    w->limits.word_retry_ms = RETRY_MS;
    w->limits.placement_settle_ms = 10;
    pace_begin_empty(j.p);
    for (uint64_t id = 1; id <= NODES; id++)
        world_node_up(w, id, 1);
    w->holder = held ? rsim_between(sim, 1, NODES) : 0;
    if (known < PACE_SHARDS)
        w->epochs_known[rsim_between(sim, 1, NODES)][known] = 1;
    w->deaf_node = rsim_between(sim, 0, NODES);
    world_elect(w);
    pace_run(j.p, 40);
    for (uint32_t i = 0; i < PACE_SHARDS && w->deaf_node != 0; i++)
        PROMISE(sim, pace_write_of(j.p, CLUSTER_KEY_SHARD, i) == NULL,
                "placed, and node %llu has not said what it knows",
                (unsigned long long)w->deaf_node);
    w->deaf_node = 0;
    pace_run(j.p, 2 * RETRY_MS);
    for (uint32_t i = 0; i < PACE_SHARDS; i++)
        PROMISE(sim, (pace_write_of(j.p, CLUSTER_KEY_SHARD, i) == NULL) == (held || i == known),
                "shard %u, which %s, is %s", i,
                held || i == known ? "a node knows" : "no node knows",
                held || i == known ? "placed" : "not placed");
    pace_free(j.p);
}

void room_vouched(struct rsim *sim)
{
    changes(sim);
    placements(sim);
}
