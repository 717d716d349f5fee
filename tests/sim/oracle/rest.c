/* How long a cluster may take to come to rest, and why it has not: what each replica, etcd and each
 * coordinator has. */
#include <string.h>

#include "tests/sim/sim.h"

#define LEARNING_MS_MAX 600000u

/* All that were ever sent by those that are up. */
static uint64_t snapshot_parts(const struct sim *sim)
{
    uint64_t parts = 0;

    for (uint32_t n = 0; n < sim->node_count; n++) {
        for (uint32_t i = 0; i < sim->shard_count; i++) {
            struct shard_stats stats;
            if (sim->nodes[n].slots[i].shard == NULL)
                continue;
            shard_stats_get(sim->nodes[n].slots[i].shard, &stats);
            parts += stats.snapshot.parts;
        }
    }
    return parts;
}

struct rest_wait rest_wait_begin(const struct sim *sim, uint32_t most_ms)
{
    return (struct rest_wait){ .begin_ms = sim->now_ms,
                               .end_ms = sim->now_ms + most_ms,
                               .most_ms = most_ms,
                               .parts = snapshot_parts(sim) };
}

bool rest_wait_goes_on(const struct sim *sim, struct rest_wait *wait)
{
    uint64_t parts = snapshot_parts(sim);

    if (parts != wait->parts && sim->now_ms < wait->begin_ms + LEARNING_MS_MAX)
        wait->end_ms = sim->now_ms + wait->most_ms;
    wait->parts = parts;
    return sim->now_ms < wait->end_ms;
}

static void tell_replicas(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->shard_count; i++) {
        for (uint32_t n = 0; n < sim->node_count; n++) {
            const struct shard *shard = sim->nodes[n].slots[i].shard;
            if (shard == NULL) {
                sim_say(sim, "node %u   s%u is not there", n + 1, i);
                continue;
            }
            const struct rep *rep = shard_rep(shard);
            sim_say(
                sim, "node %u   s%u role %d epoch %llu log %llu commit %llu applied %llu of %llu",
                n + 1, i, (int)rep_role(rep), (unsigned long long)rep_epoch(rep),
                (unsigned long long)rep_last_index(rep), (unsigned long long)rep_commit_index(rep),
                (unsigned long long)shard_applied_index(shard),
                (unsigned long long)oracle_committed(sim, i));
        }
    }
}

static void tell_records(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->etcd.kv_count; i++) {
        const struct etcd_kv *kv = &sim->etcd.kvs[i];
        if (kv->create_revision > 0 && strstr(kv->key, "/gs/") == NULL)
            sim_say(sim, "etcd     %s %.*s", kv->key, (int)kv->value.size, kv->value.data);
    }
}

static void tell_coordinators(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->coord_count; i++) {
        struct coord_stats stats;
        coord_stats_get(sim->coords[i].core, &stats);
        sim_say(sim, "coord %u  active %llu, nodes %llu, unowned %llu, txns open %llu, lost %llu",
                i, (unsigned long long)stats.active, (unsigned long long)stats.nodes_live,
                (unsigned long long)stats.shards_unowned,
                (unsigned long long)stats.transactions_open, (unsigned long long)stats.writes_lost);
    }
}

void why_not_converged(struct sim *sim)
{
    tell_replicas(sim);
    tell_records(sim);
    tell_coordinators(sim);
}
