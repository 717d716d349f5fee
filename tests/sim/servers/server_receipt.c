/* A payment provider's webhook, at any game server: it delivers again and again, to whichever
 * router, after crashes, and sometimes for another player or another purchase. */
#include <stdio.h>
#include <string.h>

#include "idl/method.h"
#include "tests/sim/model/goods.h"
#include "tests/sim/servers/workload.h"

#define LOOK_BACK 6u

/* What a receipt is for stands in its number. `player`: to whom this one is delivered. */
static struct sim_op *deliver(struct sim *sim, uint32_t server, uint32_t number, uint32_t player)
{
    const struct held *held = &sim->servers[server].held[player];
    struct sim_op *op = op_new(sim, server, player, workload_face(sim, WISH_RECEIPT, number));

    snprintf(op->id, sizeof op->id, "receipt:%u", number);
    op->shared_id = true;
    op->twist = op_twist(sim->seed, UINT64_MAX - number);
    op->amount = 3 * (number * 7 % 500 + sim_chance(sim, 50)); /* Mail has goods. */
    op->attempt = (uint32_t)sim_between(sim, 1, 3);
    op->authority = BY_SYSTEM;
    if (!workload_get(sim, op->method)->receipt_by_system && sim_chance(sim, 300))
        op->authority = held->held ? BY_SESSION : BY_UNHELD;
    memcpy(op->token, held->token, sizeof op->token);
    op_call(sim, op);
    return op;
}

static uint32_t choose_player(struct sim *sim, uint32_t number)
{
    if (sim_chance(sim, 700))
        return number % sim->player_count;
    return (uint32_t)sim_between(sim, 0, sim->player_count - 1);
}

void server_webhook(struct sim *sim, uint32_t server)
{
    uint32_t back = sim_chance(sim, 400) ? 0 : (uint32_t)sim_between(sim, 1, LOOK_BACK);

    if (back == 0 || back > sim->receipts)
        back = 0;
    uint32_t number = sim->receipts - back;
    sim->receipts += back == 0;
    uint32_t player = choose_player(sim, number);
    uint32_t target = (uint32_t)(deliver(sim, server, number, player) - sim->ops);
    if (sim_chance(sim, 300))
        (void)deliver(sim, server, number, choose_player(sim, number));
    if (!sim_chance(sim, 250))
        return;
    bool look = sim_chance(sim, 500);
    struct sim_op *ask =
        op_new(sim, server, player, look ? METHOD_GET_OPERATION : METHOD_RESOLVE_OPERATION);
    ask->target = target;
    ask->of_receipt = look;
    ask->seal = true;
    op_call(sim, ask);
}
