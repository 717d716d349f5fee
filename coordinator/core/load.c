/*
 * load: what shards have to do, and exchanges that spread it once every node owns as many.
 * docs/nodes.md.
 *
 * Owners are asked now and then how many operations they have done; two answers of one epoch make
 * a rate. An exchange takes a shard from the node that has most to do, and gives it another one for
 * it, or none if it owns one more. So the number stays even, and no exchange is undone by it.
 */
#include "coordinator/core/load.h"

#include "coordinator/core/delivery.h"
#include "coordinator/core/ownership.h"
#include "coordinator/core/records.h"
#include "runtime/cluster/shard_change.h"

#define RATE_WEIGHT 4u /* One in so many of the average is the newest rate. */
#define CALL_SHARE  4u /* One in so many of the calls in flight may be for this. */
#define NO_SHARD    UINT32_MAX

void load_ask(struct coord *coord, struct coord_out *out)
{
    uint32_t calls_max = (coord->limits.calls_max + CALL_SHARE - 1) / CALL_SHARE;

    if (coord->limits.load_exchange_ms == 0 || coord->node_count < 2)
        return;
    for (uint32_t i = 0; i < coord->shard_count; i++) {
        struct shard_load *load = &coord->shards[i].load;

        if (coord->call_count >= calls_max)
            return; /* An owner that is not asked now is the first one later. */
        if (coord->now_ms < load->ask_at_ms || coord->shards[i].mod_revision == 0)
            continue;
        load->ask_at_ms = coord->now_ms + coord->limits.load_ask_ms;
        delivery_ask_state(coord, i, out);
    }
}

void load_told(struct coord *coord, struct shard *shard,
               const Holdfast__Internal__V1__MemberStateResponse *told)
{
    struct shard_load *load = &shard->load;
    uint64_t passed_ms = coord->now_ms - load->at_ms;
    bool same = load->epoch == told->epoch && told->operations >= load->operations;

    if (same && passed_ms < coord->limits.load_ask_ms / 2)
        return; /* Asked for another reason; too short for a rate. */
    if (same) {
        uint64_t rate = (told->operations - load->operations) * 1000 / passed_ms;

        load->rate = load->known ? (load->rate * (RATE_WEIGHT - 1) + rate) / RATE_WEIGHT : rate;
        load->known = true;
    }
    load->epoch = told->epoch;
    load->operations = told->operations;
    load->at_ms = coord->now_ms;
}

/* ---- exchanges ---- */
struct exchange {
    uint32_t given, taken; /* NO_SHARD: none. */
    uint64_t to;
    uint64_t most; /* What the busier of the two has to do afterwards. */
};

/* Adds up. False: some rate is not known, or some owner is not there. */
static bool sum_loads(struct coord *coord, uint64_t ret_loads[CLUSTER_NODES_MAX])
{
    for (uint32_t i = 0; i < coord->shard_count; i++) {
        const struct node *owner = node_find(coord, coord->shards[i].record.owner);

        if (owner == NULL || !coord->shards[i].load.known)
            return false;
        ret_loads[owner - coord->nodes] += coord->shards[i].load.rate;
    }
    return true;
}

static bool may_go(const struct coord *coord, uint32_t number, uint64_t from, uint64_t to)
{
    const struct shard *shard = &coord->shards[number];

    return shard->record.owner == from && shard_record_has_member(&shard->record, to) &&
           !shard_change_is_open(&shard->record) && shard_is_calm(coord, shard) &&
           replica_may_own(coord, number, to);
}

/* The best of what node `from` could give to node `to`, and get for it. */
static void consider(const struct coord *coord, const uint64_t *loads, uint32_t from, uint32_t to,
                     struct exchange *best)
{
    uint64_t from_id = coord->nodes[from].record.replica_id;
    uint64_t to_id = coord->nodes[to].record.replica_id;
    bool one_way = coord->owned[from] > coord->owned[to];
    /* A busy node may be one that is to own nothing: it only gives. */
    uint32_t offers = node_is_avoided(coord, &coord->nodes[from]) ? 0 : coord->shard_count;

    for (uint32_t given = 0; given < coord->shard_count; given++) {
        uint64_t given_rate = coord->shards[given].load.rate;

        if (!may_go(coord, given, from_id, to_id))
            continue;
        for (uint32_t i = one_way ? 0 : 1; i <= offers; i++) {
            uint32_t taken = i == 0 ? NO_SHARD : i - 1;
            uint64_t taken_rate = i == 0 ? 0 : coord->shards[taken].load.rate;

            if (taken_rate >= given_rate || (i > 0 && !may_go(coord, taken, to_id, from_id)))
                continue;
            uint64_t shift = given_rate - taken_rate;
            uint64_t most =
                loads[from] - shift > loads[to] + shift ? loads[from] - shift : loads[to] + shift;
            if (most < best->most)
                *best = (struct exchange){ given, taken, to_id, most };
        }
    }
}

static void carry_out(struct coord *coord, uint32_t from, const struct exchange *exchange)
{
    uint64_t from_id = coord->nodes[from].record.replica_id;

    if (!ownership_hand_over(coord, exchange->given, exchange->to, "spread load"))
        return;
    /* Should this one not be written, the number is evened out later. */
    if (exchange->taken != NO_SHARD)
        (void)ownership_hand_over(coord, exchange->taken, from_id, "spread load");
    coord->stats.exchanges++;
}

void load_exchange(struct coord *coord, const uint64_t *owners, uint32_t owner_count)
{
    uint64_t loads[CLUSTER_NODES_MAX] = { 0 }, total = 0;
    uint32_t busiest = 0;

    coord->exchange_at_ms = coord->now_ms + coord->limits.load_exchange_ms;
    if (!sum_loads(coord, loads))
        return;
    for (uint32_t n = 0; n < coord->node_count; n++) {
        total += loads[n];
        busiest = loads[n] > loads[busiest] ? n : busiest;
    }
    uint64_t margin = total / coord->node_count * coord->limits.load_percent / 100;
    margin = margin > coord->limits.load_floor ? margin : coord->limits.load_floor;
    struct exchange best = { .given = NO_SHARD, .most = loads[busiest] };

    for (uint32_t i = 0; i < owner_count; i++) {
        uint32_t to = (uint32_t)(node_find(coord, owners[i]) - coord->nodes);

        if (loads[to] + margin < loads[busiest])
            consider(coord, loads, busiest, to, &best);
    }
    if (best.given != NO_SHARD && best.most + margin / 2 <= loads[busiest])
        carry_out(coord, busiest, &best);
}
