/* spread: hands shards over, a few at a time, until every node owns as many. DESIGN section 4. */
#include "coordinator/core/spread.h"

#include <stdlib.h>
#include <string.h>

#include "coordinator/core/load.h"
#include "coordinator/core/ownership.h"
#include "coordinator/core/records.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"
#include "runtime/cluster/shard_change.h"

#define BALANCED_PAUSE_MS 2000u /* Nothing to hand over: look again after it. */

/* Nodes that may be handed shards, or 0 while some node is too young: ownership is about to move
 * anyway, and a node that comes and goes must not draw shards to it. */
static uint32_t steady_nodes(const struct coord *coord, uint64_t ret_owners[CLUSTER_NODES_MAX])
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < coord->node_count; i++) {
        const struct node *node = &coord->nodes[i];

        if (coord->now_ms - node->since_ms < coord->limits.rebalance_up_ms)
            return 0;
        if (!node_is_avoided(coord, node))
            ret_owners[count++] = node->record.replica_id;
    }
    return count;
}

static bool ownership_is_quiet(struct coord *coord)
{
    for (uint32_t i = 0; i < coord->shard_count; i++) {
        const struct shard *shard = &coord->shards[i];

        if (shard->mod_revision == 0 || !shard_is_settled(shard))
            return false;
    }
    return true;
}

static bool ownership_is_even(const struct coord *coord)
{
    uint32_t least = UINT32_MAX, most = 0;

    for (uint32_t i = 0; i < coord->node_count; i++) {
        least = coord->owned[i] < least ? coord->owned[i] : least;
        most = coord->owned[i] > most ? coord->owned[i] : most;
    }
    return coord->node_count == 0 || most - least <= 1;
}

/* How much a hand-over evens out: how many more shards the giver owns than the taker. */
static int32_t relief(struct coord *coord, uint64_t from, uint64_t to)
{
    const struct node *giver = node_find(coord, from);
    const struct node *taker = node_find(coord, to);

    if (giver == NULL || taker == NULL)
        return INT32_MIN;
    return (int32_t)coord->owned[giver - coord->nodes] -
           (int32_t)coord->owned[taker - coord->nodes];
}

/* A step of a chain whose next one is not possible yet would burden the node in between. */
static bool burdens(struct coord *coord, uint64_t from, uint64_t to)
{
    const struct node *giver = node_find(coord, from);

    return giver != NULL && !node_is_avoided(coord, giver) && relief(coord, from, to) < 0;
}

/* Hands over one shard of those which placement_balance would move: the one that helps most, so
 * that no chain of moves makes a loaded node more so for longer than it must. */
static void hand_over_one(struct coord *coord, const uint64_t *owners, uint32_t owner_count)
{
    struct placement_shard *proposals = ownership_proposals_new(coord);
    uint32_t moves = placement_balance(proposals, coord->shard_count, owners, owner_count);
    uint32_t chosen = UINT32_MAX;
    int32_t most = INT32_MIN;

    coord->handover_at_ms =
        coord->now_ms + (moves > 0 ? coord->limits.rebalance_period_ms : BALANCED_PAUSE_MS);
    for (uint32_t i = 0; i < coord->shard_count; i++) {
        uint64_t from = coord->shards[i].record.owner;
        uint64_t to = proposals[i].owner;

        if (to == 0 || to == from || shard_change_is_open(&coord->shards[i].record) ||
            !shard_is_calm(coord, &coord->shards[i]) || burdens(coord, from, to) ||
            !replica_may_own(coord, i, to) || relief(coord, from, to) <= most)
            continue;
        chosen = i;
        most = relief(coord, from, to);
    }
    if (chosen != UINT32_MAX &&
        ownership_hand_over(coord, chosen, proposals[chosen].owner, "spread ownership"))
        coord->stats.handovers++;
    free(proposals);
}

void spread_run(struct coord *coord, struct coord_out *out)
{
    uint64_t owners[CLUSTER_NODES_MAX];

    if (coord->limits.rebalance == 0)
        return;
    load_ask(coord, out);
    bool even = ownership_is_even(coord);
    bool exchange = even && coord->limits.load_exchange_ms > 0;

    if (coord->now_ms < coord->handover_at_ms || (even && !exchange) ||
        (exchange && coord->now_ms < coord->exchange_at_ms) || !ownership_is_quiet(coord))
        return;
    uint32_t owner_count = steady_nodes(coord, owners);

    if (owner_count == 0)
        return;
    if (exchange)
        load_exchange(coord, owners, owner_count);
    else
        hand_over_one(coord, owners, owner_count);
}
