#include "runtime/cluster/placement.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/hash.h"

uint32_t shard_of_entity(struct slice entity_id, uint32_t shard_count)
{
    CHECK(shard_count_valid(shard_count));
    if (shard_count == 1)
        return 0; /* A shift by 64 would be undefined. */
    return (uint32_t)(hash_u64(entity_id) >> (64 - (unsigned)__builtin_ctz(shard_count)));
}

uint32_t shard_of_target(struct slice target_id, uint32_t shard_count)
{
    uint8_t entity[sizeof TARGET_ENTITY - 1 + TARGET_BYTES_MAX];
    const size_t head = sizeof TARGET_ENTITY - 1;

    CHECK(target_id.size <= TARGET_BYTES_MAX);
    memcpy(entity, TARGET_ENTITY, head);
    memcpy(entity + head, target_id.data, target_id.size);
    return shard_of_entity((struct slice){ entity, head + target_id.size }, shard_count);
}

static uint64_t weight(uint32_t shard, uint64_t replica_id)
{
    uint8_t bytes[12];

    store_u32(bytes, shard);
    store_u64(bytes + 4, replica_id);
    return hash_u64((struct slice){ bytes, sizeof bytes });
}

/* How many of the chosen nodes stand in node's zone. */
static uint32_t zone_use(const struct placement_node *nodes, const uint32_t *chosen,
                         uint32_t chosen_count, uint32_t node)
{
    uint32_t use = 0;

    for (uint32_t i = 0; i < chosen_count; i++)
        use += strcmp(nodes[chosen[i]].zone, nodes[node].zone) == 0 ? 1u : 0u;
    return use;
}

static bool is_chosen(const uint32_t *chosen, uint32_t chosen_count, uint32_t node)
{
    for (uint32_t i = 0; i < chosen_count; i++) {
        if (chosen[i] == node)
            return true;
    }
    return false;
}

/* The heaviest node of the least used zone; ties go to the lower id. UINT32_MAX: there is none. */
static uint32_t choose_next(uint32_t shard, const struct placement_node *nodes, uint32_t node_count,
                            const uint32_t *chosen, uint32_t chosen_count)
{
    uint32_t best = UINT32_MAX;
    uint32_t best_use = 0;
    uint64_t best_weight = 0;

    for (uint32_t i = 0; i < node_count; i++) {
        if (nodes[i].closed || is_chosen(chosen, chosen_count, i))
            continue;
        uint32_t use = zone_use(nodes, chosen, chosen_count, i);
        uint64_t w = weight(shard, nodes[i].replica_id);
        bool better = best == UINT32_MAX || use < best_use || (use == best_use && w > best_weight);
        if (best != UINT32_MAX && use == best_use && w == best_weight)
            better = nodes[i].replica_id < nodes[best].replica_id;
        if (!better)
            continue;
        best = i;
        best_use = use;
        best_weight = w;
    }
    return best;
}

uint32_t placement_members(uint32_t shard, const struct placement_node *nodes, uint32_t node_count,
                           uint32_t replication_factor, uint64_t ret_members[CLUSTER_MEMBERS_MAX])
{
    uint32_t chosen[CLUSTER_MEMBERS_MAX];
    uint32_t count = replication_factor < node_count ? replication_factor : node_count;

    CHECK(node_count <= CLUSTER_NODES_MAX);
    CHECK(replication_factor <= CLUSTER_MEMBERS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        chosen[i] = choose_next(shard, nodes, node_count, chosen, i);
        CHECK(chosen[i] != UINT32_MAX); /* None of them is closed. */
        ret_members[i] = nodes[chosen[i]].replica_id;
    }
    return count;
}

uint64_t placement_next(uint32_t shard, const struct placement_node *nodes, uint32_t node_count,
                        const uint64_t *kept, uint32_t kept_count)
{
    uint32_t chosen[CLUSTER_MEMBERS_MAX];
    uint32_t count = 0;

    CHECK(kept_count <= CLUSTER_MEMBERS_MAX);
    for (uint32_t i = 0; i < node_count; i++) {
        for (uint32_t k = 0; k < kept_count; k++) {
            if (nodes[i].replica_id == kept[k])
                chosen[count++] = i;
        }
    }
    uint32_t next = choose_next(shard, nodes, node_count, chosen, count);
    return next != UINT32_MAX ? nodes[next].replica_id : 0;
}

/* ---- Balance of ownership ---- */

struct balance {
    struct placement_shard *shards;
    uint32_t shard_count;
    uint32_t node_count;
    uint64_t nodes[CLUSTER_NODES_MAX]; /* Rising, so that order of input does not matter. */
    uint32_t load[CLUSTER_NODES_MAX];
    /* Breadth-first search: the node and shard by which each node was reached. */
    uint32_t from_node[CLUSTER_NODES_MAX];
    uint32_t from_shard[CLUSTER_NODES_MAX];
};

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Index of the node, or UINT32_MAX when it may not own shards. */
static uint32_t node_find(const struct balance *b, uint64_t replica_id)
{
    const uint64_t *found =
        bsearch(&replica_id, b->nodes, b->node_count, sizeof replica_id, compare_u64);

    return found != NULL ? (uint32_t)(found - b->nodes) : UINT32_MAX;
}

/* The least loaded member; among equals the heavier for this shard. 0 when none may own. */
static uint64_t pick_owner(const struct balance *b, uint32_t shard)
{
    const struct placement_shard *s = &b->shards[shard];
    uint32_t best = UINT32_MAX;
    uint64_t best_weight = 0;

    for (uint32_t i = 0; i < s->member_count; i++) {
        uint32_t node = node_find(b, s->members[i]);
        if (node == UINT32_MAX)
            continue;
        uint64_t w = weight(shard, s->members[i]);
        if (best == UINT32_MAX || b->load[node] < b->load[best] ||
            (b->load[node] == b->load[best] && w > best_weight)) {
            best = node;
            best_weight = w;
        }
    }
    return best != UINT32_MAX ? b->nodes[best] : 0;
}

static bool has_member(const struct placement_shard *shard, uint64_t replica_id)
{
    for (uint32_t i = 0; i < shard->member_count; i++) {
        if (shard->members[i] == replica_id)
            return true;
    }
    return false;
}

/* Owners that can stay do; then the ownerless are dealt out. */
static void assign_first(struct balance *b)
{
    for (uint32_t s = 0; s < b->shard_count; s++) {
        uint32_t node = node_find(b, b->shards[s].owner);
        if (node == UINT32_MAX || !has_member(&b->shards[s], b->shards[s].owner))
            b->shards[s].owner = 0;
        else
            b->load[node]++;
    }
    for (uint32_t s = 0; s < b->shard_count; s++) {
        if (b->shards[s].owner != 0)
            continue;
        b->shards[s].owner = pick_owner(b, s);
        if (b->shards[s].owner != 0)
            b->load[node_find(b, b->shards[s].owner)]++;
    }
}

/* Moves one shard along each step of the path that ends at `node`. */
static void move_along(struct balance *b, uint32_t start, uint32_t node)
{
    b->load[start]--;
    b->load[node]++;
    while (node != start) {
        b->shards[b->from_shard[node]].owner = b->nodes[node];
        node = b->from_node[node];
    }
}

/* Looks for the nearest node with at least two shards fewer than `start`, reachable by moving
 * shards to other members; moves. False when there is none. */
static bool relieve(struct balance *b, uint32_t start)
{
    uint32_t queue[CLUSTER_NODES_MAX];
    uint32_t head = 0;
    uint32_t tail = 0;

    for (uint32_t i = 0; i < b->node_count; i++)
        b->from_node[i] = UINT32_MAX;
    b->from_node[start] = start;
    queue[tail++] = start;
    while (head < tail) {
        uint32_t at = queue[head++];
        if (b->load[at] + 2 <= b->load[start]) {
            move_along(b, start, at);
            return true;
        }
        for (uint32_t s = 0; s < b->shard_count; s++) {
            const struct placement_shard *shard = &b->shards[s];
            if (shard->owner != b->nodes[at])
                continue;
            for (uint32_t i = 0; i < shard->member_count; i++) {
                uint32_t next = node_find(b, shard->members[i]);
                if (next == UINT32_MAX || b->from_node[next] != UINT32_MAX)
                    continue;
                b->from_node[next] = at;
                b->from_shard[next] = s;
                queue[tail++] = next;
            }
        }
    }
    return false;
}

uint32_t placement_balance(struct placement_shard *shards, uint32_t shard_count,
                           const uint64_t *owners, uint32_t owner_count)
{
    struct balance b = { .shards = shards, .shard_count = shard_count };
    uint32_t changed = 0;

    CHECK(owner_count <= CLUSTER_NODES_MAX);
    CHECK(shard_count <= CLUSTER_SHARDS_MAX);
    memcpy(b.nodes, owners, owner_count * sizeof owners[0]);
    b.node_count = owner_count;
    qsort(b.nodes, b.node_count, sizeof b.nodes[0], compare_u64);
    uint64_t *before = mem_alloc((shard_count + 1) * sizeof *before);
    for (uint32_t s = 0; s < shard_count; s++)
        before[s] = shards[s].owner;
    assign_first(&b);
    /* Each move lowers the sum of squared loads, so this ends. */
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t node = 0; node < b.node_count; node++) {
            while (relieve(&b, node))
                moved = true;
        }
    }
    for (uint32_t s = 0; s < shard_count; s++)
        changed += before[s] != shards[s].owner ? 1u : 0u;
    free(before);
    return changed;
}
