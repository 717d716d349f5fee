#include "node/core/replication/sim/rep_sim_check.h"
#include "runtime/base/check.h"

#define ULL(n) ((unsigned long long)(n))

static bool disk_held(const struct sim_disk *disk, uint64_t index, struct hash128 hash)
{
    const struct entry *entry = sim_disk_entry(disk, index);

    if (entry == NULL)
        return disk->checkpoint.index >= index;
    return hash128_equal(entry->hash, hash);
}

/* Or held it when it was acknowledged. */
static bool disk_holds(const struct sim_node *node, uint64_t index, struct hash128 hash)
{
    if (!node->wiped && disk_held(&node->disk, index, hash))
        return true;
    return (node->wiped || node->forgot) && disk_held(&node->lost, index, hash);
}

/* Counted on the disks, not by what anybody believes. */
static bool majority_holds(const struct rep_sim *sim, const struct membership *m, uint64_t index,
                           struct hash128 hash)
{
    uint32_t acks = 0;
    uint32_t new_acks = 0;

    for (uint32_t i = 0; i < m->count; i++)
        if (disk_holds(&sim->nodes[m->members[i] - 1], index, hash))
            acks |= 1u << i;
    for (uint32_t i = 0; i < m->new_count; i++)
        if (disk_holds(&sim->nodes[m->new_members[i] - 1], index, hash))
            new_acks |= 1u << i;
    return membership_quorum(m, acks, new_acks);
}

static void commit_first(struct rep_sim *sim, const struct sim_node *node,
                         const struct entry *entry)
{
    if (sim->committed_count == sim->committed_capacity) {
        sim->committed_capacity = sim->committed_capacity > 0 ? sim->committed_capacity * 2 : 256;
        sim->committed =
            mem_realloc(sim->committed, sim->committed_capacity * sizeof sim->committed[0]);
    }
    sim->committed[sim->committed_count++] = entry->hash;
    sim->counts.commits++;
    if (!majority_holds(sim, &node->membership, entry->index, entry->hash))
        rep_sim_fail(sim, "node %llu commits %llu, which no majority has on disk", ULL(node->id),
                     ULL(entry->index));
}

/* At most one entry per index is ever committed, and it never changes. */
void rep_sim_check_commit(struct rep_sim *sim, struct sim_node *node)
{
    uint64_t commit = rep_commit_index(node->rep);

    for (uint64_t index = node->commit_seen + 1; index <= commit; index++) {
        const struct entry *entry = rep_entry(node->rep, index);
        if (entry == NULL) {
            rep_sim_fail(sim, "node %llu: committed entry %llu is not in memory", ULL(node->id),
                         ULL(index));
            return;
        }
        if (index == sim->committed_count + 1)
            commit_first(sim, node, entry);
        if (index > sim->committed_count ||
            !hash128_equal(sim->committed[index - 1], entry->hash)) {
            rep_sim_fail(sim, "node %llu commits another entry at %llu (epoch %llu)", ULL(node->id),
                         ULL(index), ULL(entry->dot.epoch));
            return;
        }
    }
    node->commit_seen = commit;
}

static uint64_t acknowledged_before(const struct rep_sim *sim, uint64_t ms)
{
    uint64_t kept = sim->mark_count < SIM_MARKS ? sim->mark_count : SIM_MARKS;

    for (uint64_t i = sim->mark_count; i > sim->mark_count - kept; i--) {
        if (sim->marks[(i - 1) % SIM_MARKS].ms < ms)
            return sim->marks[(i - 1) % SIM_MARKS].index;
    }
    return 0;
}

/* Linearizable: a read sees every write that was acknowledged before it began. */
void rep_sim_check_reads(struct rep_sim *sim, struct sim_node *node, const struct rep_out *out)
{
    uint64_t round = out->rounds_done, index = out->rounds_index;
    uint64_t begun = acknowledged_before(sim, out->rounds_ms);
    uint32_t kept = 0;

    sim->counts.rounds++;
    /* What a later read with a greatest age relies on. */
    if (index < begun)
        rep_sim_fail(sim, "node %llu says that %llu was all at %llu ms, acknowledged was %llu",
                     ULL(node->id), ULL(index), ULL(out->rounds_ms), ULL(begun));
    for (uint32_t i = 0; i < node->read_count; i++) {
        const struct sim_read *read = &node->reads[i];
        if (read->round > round) {
            node->reads[kept++] = *read;
            continue;
        }
        sim->counts.reads++;
        sim->reads_answered++;
        if (index < read->must_see)
            rep_sim_fail(sim, "node %llu answers a read at %llu, acknowledged was %llu",
                         ULL(node->id), ULL(index), ULL(read->must_see));
    }
    node->read_count = kept;
}

bool rep_sim_converged(const struct rep_sim *sim)
{
    const struct membership *m = &sim->records[sim->record_count - 1].membership;
    const struct sim_node *first = NULL;

    for (uint32_t i = 0; i < sim->node_count; i++) {
        const struct sim_node *node = &sim->nodes[i];
        if (!membership_has(m, node->id))
            continue;
        if (node->rep == NULL)
            return false;
        if (first == NULL)
            first = node;
        if (rep_last_index(node->rep) != sim->committed_count ||
            rep_commit_index(node->rep) != sim->committed_count ||
            node->applied.index != sim->committed_count)
            return false;
        if (!hash128_equal(node->applied.outcome, first->applied.outcome))
            return false;
        if (vector_compare(rep_vector(node->rep), rep_vector(first->rep)) != VECTOR_EQUAL)
            return false;
    }
    return first != NULL;
}
