/* At the end of a run, when all is well: players trade in a rush, and others want to see several of
 * them as of one moment. Both come to their end, and nearly all reads tell something. */
#include "node/core/shard/read_hold.h"
#include "runtime/base/check.h"
#include "tests/sim/model/goods.h"
#include "tests/sim/model/model.h"
#include "tests/sim/oracle/oracle.h"

#define RUSHES   100u /* Of a thousand runs. */
#define RUSH_MS  4000u
#define NEAR_MS  3u
#define GAP_MS   4u
#define GIFTS    12u
#define READS    30u /* Of a thousand trades. */
#define GIFTS_MS 200u
/* What earlier reads, in a slow network, made writes wait is paid back. */
#define REST_MS     ((READ_HOLD_REST + READ_HOLD_OWED_URGENT) * SIM_READ_HOLD_MS)
#define END_MS_MAX  60000u
#define LOOK_MS     100u
#define READS_SURE  10u
#define BUSY_ONE_OF 8u /* More reads may not end without an answer, */
#define BUSY_CHANCE 2u /* but for so many: of forty, some more than five come by chance. */

static bool may_rush(struct sim *sim)
{
    for (uint32_t shard = 0; shard < sim->shard_count; shard++) {
        uint32_t owners = 0;
        for (uint32_t n = 0; n < sim->node_count; n++) {
            const struct sim_node *node = &sim->nodes[n];
            owners += node->up && !node->full && node->slots[shard].shard != NULL &&
                      shard_serves(node->slots[shard].shard);
        }
        if (owners != 1)
            return false;
    }
    return sim->player_count > 2;
}

/* The game server may write the player, and knows it. */
static bool may_write(const struct sim *sim, uint32_t server, uint32_t player)
{
    const struct player_model *model = &sim->oracle->players[player];

    if (incarnation_is_none(model->incarnation) ||
        model_expired(&sim->oracle->shards[model->shard], model->incarnation))
        return !sim->servers[server].held[player].held;
    return sim->servers[server].held[player].held &&
           sim->servers[server].held[player].fence == model->fence;
}

static uint32_t group_of(const struct sim *sim, uint32_t server, uint32_t *ret_group)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < sim->player_count && count < SIM_READ_PLAYERS; i++) {
        if (may_write(sim, server, i))
            ret_group[count++] = i;
    }
    return count;
}

/* One that is there, with enough players; server_count: none. */
static uint32_t server_choose(struct sim *sim, uint32_t *ret_group)
{
    uint32_t first = (uint32_t)sim_between(sim, 0, sim->server_count - 1);

    for (uint32_t i = 0; i < sim->server_count; i++) {
        uint32_t server = (first + i) % sim->server_count;
        if (sim->servers[server].up && sim->servers[server].registered &&
            group_of(sim, server, ret_group) == SIM_READ_PLAYERS)
            return server;
    }
    return sim->server_count;
}

static bool rush(struct sim *sim, bool (*run_until)(struct sim *sim, uint64_t until_ms))
{
    uint32_t group[SIM_READ_PLAYERS];
    uint32_t server = server_choose(sim, group);
    uint64_t end_ms = sim->now_ms + RUSH_MS;

    if (server == sim->server_count)
        return true;
    for (uint32_t i = 0; i < GIFTS; i++)
        server_give(sim, server, group[i % SIM_READ_PLAYERS]);
    if (!run_until(sim, sim->now_ms + GIFTS_MS))
        return false;
    /* As in one place: what bounds how long anybody waits is made for that. */
    sim->trading = true;
    sim->delay_ms_max = sim->delay_ms_max < NEAR_MS ? sim->delay_ms_max : NEAR_MS;
    sim->sync_ms_max = sim->sync_ms_max < NEAR_MS ? sim->sync_ms_max : NEAR_MS;
    sim->load_ms_max = sim->load_ms_max < NEAR_MS ? sim->load_ms_max : NEAR_MS;
    while (sim->now_ms < end_ms) {
        server_trade(sim, server, group);
        sim->counts.trading_swaps++;
        if (sim_chance(sim, READS))
            server_read_group(sim, server, group);
        if (!run_until(sim, sim->now_ms + sim_between(sim, 1, GAP_MS)))
            return false;
    }
    sim->trading = false;
    return true;
}

/* Changes with every change of an owner. */
static uint64_t epochs(const struct sim *sim)
{
    uint64_t sum = 0;

    for (uint32_t n = 0; n < sim->node_count; n++) {
        for (uint32_t shard = 0; shard < sim->shard_count; shard++) {
            const struct shard *replica = sim->nodes[n].slots[shard].shard;
            if (sim->nodes[n].up && replica != NULL && shard_serves(replica))
                sum += rep_epoch(shard_rep(replica));
        }
    }
    return sum;
}

/* `calm`: no owner changed, which takes longer than reads wait. */
static void judge(struct sim *sim, bool calm, uint64_t reads, uint64_t busy)
{
    sim_say(sim, "---- %llu reads among trades, %llu of them told nothing",
            (unsigned long long)(reads + busy), (unsigned long long)busy);
    if (routers_open(sim) > 0)
        sim_fail(sim, 0, "%u calls never end", routers_open(sim));
    else if (oracle_pending(sim) > 0)
        sim_fail(sim, 0, "%u timers or transfers never end", oracle_pending(sim));
    else if (!oracle_converged(sim)) {
        why_not_converged(sim);
        sim_fail(sim, oracle_converged_count(sim), "the cluster does not converge after a rush");
    } else if (calm && reads + busy >= READS_SURE &&
               busy > (reads + busy) / BUSY_ONE_OF + BUSY_CHANCE)
        sim_fail(sim, 0, "%llu of %llu reads find no rest among trades", (unsigned long long)busy,
                 (unsigned long long)(reads + busy));
}

void trade_check(struct sim *sim, bool (*run_until)(struct sim *sim, uint64_t until_ms))
{
    struct sim_counts before = sim->counts;

    if (!sim_chance(sim, RUSHES) || !may_rush(sim) || !run_until(sim, sim->now_ms + REST_MS))
        return;
    sim_say(sim, "---- players trade in a rush");
    uint64_t owners = epochs(sim);
    if (!rush(sim, run_until))
        return;
    struct rest_wait wait = rest_wait_begin(sim, END_MS_MAX);
    while (rest_wait_goes_on(sim, &wait) &&
           (routers_open(sim) > 0 || oracle_pending(sim) > 0 || !oracle_converged(sim))) {
        if (!run_until(sim, sim->now_ms + LOOK_MS))
            return;
    }
    judge(sim, owners == epochs(sim), sim->counts.trading_reads - before.trading_reads,
          sim->counts.trading_busy - before.trading_busy);
}
