/* Zones, where nodes say theirs: who comes to a shard comes from a zone that the replicas which
 * stay use least, as far as the coordinator has heard when it first says so. docs/membership.md. */
#include <string.h>

#include "runtime/base/check.h"
#include "tests/sim/sim.h"

/* What the process was told last of a key. */
static bool is_told(const struct sim *sim, uint32_t proc, const struct cluster_key *key)
{
    for (uint32_t i = sim->mirrors[proc].cursor; i > 0; i--) {
        const struct etcd_change *change = &sim->etcd.changes[i - 1];
        if (slice_equal(buf_slice(&change->key), cluster_key_slice(key)))
            return change->create_revision > 0;
    }
    return false;
}

static bool may_come(const struct sim *sim, uint32_t coordinator, uint64_t id)
{
    const struct node_record *record = coord_find_node(sim->coords[coordinator].core, id);
    const struct sim_node *node = &sim->nodes[id - PROC_NODE];
    struct cluster_key wish = cluster_key_node_wish(SIM_CLUSTER, id);

    /* A coordinator believes for a while what it was told of a full disk. */
    return record != NULL && record->damaged_shards == 0 && !node->filled &&
           !is_told(sim, PROC_COORD + coordinator, &wish);
}

/* How many of those that stay are in the zone of that node. */
static uint32_t zone_mates(const struct coord *core, const struct shard_record *record, uint64_t id)
{
    const struct node_record *node = coord_find_node(core, id);
    uint32_t mates = 0;

    CHECK(node != NULL);
    for (uint32_t i = 0; i < record->member_count; i++) {
        const struct node_record *member = coord_find_node(core, record->members[i]);
        mates += record->members[i] != record->leaving && member != NULL &&
                 strcmp(member->zone, node->zone) == 0;
    }
    return mates;
}

void zones_look(struct sim *sim, uint32_t coordinator, const struct coord_write *write)
{
    struct cluster_key_parts parts = cluster_key_parse(SIM_CLUSTER, write->key);
    const struct coord *core = sim->coords[coordinator].core;
    struct shard_record record;

    if (sim->zones == 0 || sim->etcd.restores > 0 || parts.kind != CLUSTER_KEY_SHARD ||
        write->remove || shard_record_decode(write->value, &record, NULL) != ERR_OK ||
        record.learner == 0 || coord_find_node(core, record.learner) == NULL)
        return;
    const struct shard_record *now = coord_find_shard(core, parts.shard);
    struct cluster_key wish = cluster_key_shard_wish(SIM_CLUSTER, parts.shard);
    if (now == NULL || now->learner == record.learner ||
        is_told(sim, PROC_COORD + coordinator, &wish))
        return;
    uint32_t mates = zone_mates(core, &record, record.learner);
    for (uint64_t id = PROC_NODE; id < PROC_NODE + sim->node_count; id++) {
        if (id == record.learner || id == record.leaving || shard_record_has_member(&record, id) ||
            !may_come(sim, coordinator, id))
            continue;
        sim->counts.comers_zoned++;
        if (zone_mates(core, &record, id) < mates)
            sim_fail(sim, parts.shard, "node %u comes, and the zone of node %u has fewer replicas",
                     (uint32_t)record.learner, (uint32_t)id);
    }
}
