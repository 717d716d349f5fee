/* Game servers move goods: transfers, mail, claims. */
#include <string.h>

#include "runtime/base/check.h"
#include "tests/sim/model/goods.h"
#include "tests/sim/servers/workload.h"

static uint32_t another_player(struct sim *sim, uint32_t player)
{
    uint32_t other = (uint32_t)sim_between(sim, 0, sim->player_count - 2);

    return other + (other >= player);
}

static bool may_ask_itself(struct sim *sim, const struct workload_row *row)
{
    CHECK(row->system_per_thousand <= WORKLOAD_ALWAYS);
    if (row->system_per_thousand == 0 || row->system_per_thousand == WORKLOAD_ALWAYS)
        return row->system_per_thousand > 0;
    return sim_chance(sim, row->system_per_thousand);
}

/* The op becomes another where there is nothing for it. */
static void fill(struct sim *sim, struct sim_op *op)
{
    const struct workload_row *row = workload_get(sim, op->method);
    struct workload_choice choice = { .player = op->player };

    choice.uid = goods_pick_item(sim, op->player);
    choice.mail = goods_pick_mail(sim, op->player);
    choice.to = another_player(sim, op->player);
    while (row->fill != NULL && !row->fill(sim, op, &choice)) {
        CHECK(row->instead != 0);
        op->method = row->instead;
        row = workload_get(sim, op->method);
    }
}

void server_move_goods(struct sim *sim, uint32_t server, uint32_t player)
{
    const struct held *held = &sim->servers[server].held[player];

    if (sim->player_count < 2)
        return;
    struct sim_op *op = op_new(sim, server, player, workload_draw(sim, WISH_GOODS));
    op->authority = held->held ? BY_SESSION : BY_UNHELD;
    if (may_ask_itself(sim, workload_get(sim, op->method)))
        op->authority = BY_SYSTEM;
    memcpy(op->token, held->token, sizeof op->token);
    fill(sim, op);
    op_call(sim, op);
}
