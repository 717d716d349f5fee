/* Game servers let players exchange things: swaps, and transactions of two or three. */
#include <stdio.h>
#include <string.h>

#include "idl/method.h"
#include "tests/sim/model/goods.h"
#include "tests/sim/servers/workload.h"

/* Mostly somebody who plays here. */
static uint32_t choose_player(struct sim *sim, uint32_t server)
{
    uint32_t player = (uint32_t)sim_between(sim, 0, sim->player_count - 1);

    for (uint32_t i = 0; i < 4 && !sim->servers[server].held[player].held; i++)
        player = (uint32_t)sim_between(sim, 0, sim->player_count - 1);
    return player;
}

static void choose_other(struct sim *sim, struct sim_op *op, uint32_t place)
{
    const struct sim_server *server = &sim->servers[op->server];
    uint32_t player;

    do {
        player = choose_player(sim, op->server);
    } while (player == op->player || (place == 1 && player == op->others[0]));
    op->others[place] = player;
    op->other_authority[place] = server->held[player].held ? BY_SESSION : BY_UNHELD;
    memcpy(op->other_tokens[place], server->held[player].token, sizeof op->other_tokens[place]);
}

/* Those who take part, while they trade. */
static void read_traders(struct sim *sim, uint32_t server, uint32_t target)
{
    struct sim_op *op = op_new(sim, server, sim->ops[target].player, METHOD_READ_PLAYERS);
    const struct sim_op *trade = &sim->ops[target];

    op->other_count = trade->other_count;
    memcpy(op->others, trade->others, sizeof op->others);
    if (sim_chance(sim, 500)) { /* The other way round. */
        op->player = trade->others[0];
        op->others[0] = trade->player;
    }
    op_call_later(sim, op, sim_between(sim, 0, 60));
}

static struct sim_op *op_of_group(struct sim *sim, uint32_t server, const uint32_t *group,
                                  uint32_t method)
{
    uint32_t first = (uint32_t)sim_between(sim, 0, SIM_READ_PLAYERS - 1);
    struct sim_op *op = op_new(sim, server, group[first], method);
    const struct sim_server *asker = &sim->servers[server];

    op->authority = asker->held[op->player].held ? BY_SESSION : BY_UNHELD;
    memcpy(op->token, asker->held[op->player].token, sizeof op->token);
    op->other_count = SIM_READ_PLAYERS - 1;
    for (uint32_t i = 0; i < op->other_count; i++) {
        uint32_t player = group[(first + 1 + i) % SIM_READ_PLAYERS];
        op->others[i] = player;
        op->other_authority[i] = asker->held[player].held ? BY_SESSION : BY_UNHELD;
        memcpy(op->other_tokens[i], asker->held[player].token, sizeof op->other_tokens[i]);
    }
    return op;
}

void server_trade(struct sim *sim, uint32_t server, const uint32_t *group)
{
    struct sim_op *op = op_of_group(sim, server, group, workload_draw(sim, WISH_TRADE));

    if (workload_get(sim, op->method)->others_max == 1 || sim_chance(sim, 300))
        op->other_count = 1;
    op_call(sim, op);
}

void server_read_group(struct sim *sim, uint32_t server, const uint32_t *group)
{
    op_call(sim, op_of_group(sim, server, group, METHOD_READ_PLAYERS));
}

void server_give(struct sim *sim, uint32_t server, uint32_t player)
{
    struct sim_op *op = op_new(sim, server, player, METHOD_GRANT);

    op->authority = BY_SYSTEM;
    op_call(sim, op);
}

void server_transact(struct sim *sim, uint32_t server)
{
    uint32_t player = choose_player(sim, server);
    const struct held *held = &sim->servers[server].held[player];

    if (sim->player_count < 2)
        return;
    struct sim_op *op = op_new(sim, server, player, workload_draw(sim, WISH_TRADE));
    op->authority = held->held ? BY_SESSION : BY_UNHELD;
    memcpy(op->token, held->token, sizeof op->token);
    op->other_count = 1;
    choose_other(sim, op, 0);
    if (workload_get(sim, op->method)->others_max > 1 && sim->player_count > 2 &&
        sim_chance(sim, 600)) {
        op->other_count = 2;
        choose_other(sim, op, 1);
    }
    const char *uid = sim_chance(sim, 500) ? goods_pick_item(sim, player) : NULL;
    if (uid != NULL)
        snprintf(op->uid, sizeof op->uid, "%s", uid);
    uid = sim_chance(sim, 500) ? goods_pick_item(sim, op->others[0]) : NULL;
    if (uid != NULL && strcmp(uid, op->uid) != 0)
        snprintf(op->other_uid, sizeof op->other_uid, "%s", uid);
    if (op->other_uid[0] == '\0') /* An item goes one way. */
        goods_pick_more(sim, op);
    uint32_t target = (uint32_t)(op - sim->ops);
    op_call(sim, op);
    if (sim_chance(sim, 400))
        read_traders(sim, server, target);
    if (!sim_chance(sim, 200))
        return;
    struct sim_op *seal = op_new(sim, server, player, METHOD_RESOLVE_OPERATION);
    seal->target = target;
    seal->seal = true;
    op_call_later(sim, seal, sim_between(sim, 1, 60)); /* While it is on its way. */
}
