/* What game servers want of the ledger beyond Grant, Spend and Mint: items consumed, operations
 * reversed. They remember what they were told, and ask for what cannot be as well. */
#include <stdio.h>
#include <string.h>

#include "idl/method.h"
#include "runtime/base/check.h"
#include "tests/sim/goods.h"

#define LOOK_BACK 200u

/* Some earlier op on this player by one of these methods; NULL: none was found. */
static const struct sim_op *earlier_op(struct sim *sim, uint32_t player, const uint32_t *methods,
                                       uint32_t method_count)
{
    uint32_t span = sim->op_count < LOOK_BACK ? sim->op_count : LOOK_BACK;
    uint32_t from = span > 0 ? (uint32_t)sim_between(sim, 1, span) : 0;

    for (uint32_t back = from; back > 0; back--) {
        const struct sim_op *op = &sim->ops[sim->op_count - back];
        for (uint32_t i = 0; i < method_count; i++) {
            if (op->player == player && op->method == methods[i] && op->id[0] != '\0')
                return op;
        }
    }
    return NULL;
}

static struct sim_op *consume(struct sim *sim, uint32_t server, uint32_t player)
{
    const char *uid = goods_pick_item(sim, player);

    if (uid == NULL)
        return NULL;
    struct sim_op *op = op_new(sim, server, player, METHOD_CONSUME);
    snprintf(op->uid, sizeof op->uid, "%s", uid);
    return op;
}

static struct sim_op *reverse(struct sim *sim, uint32_t server, uint32_t player)
{
    static const uint32_t methods[] = { METHOD_GRANT, METHOD_SPEND,   METHOD_MINT,   METHOD_CONSUME,
                                        METHOD_POST,  METHOD_REVERSE, METHOD_RESERVE };
    const struct sim_op *earlier = earlier_op(sim, player, methods, ARRAY_SIZE(methods));

    if (earlier == NULL)
        return NULL;
    uint32_t target = (uint32_t)(earlier - sim->ops);
    struct sim_op *op = op_new(sim, server, player, METHOD_REVERSE);
    op->target = target;
    return op;
}

/* Of some reservation, or of what is none. */
static struct sim_op *close_reservation(struct sim *sim, uint32_t server, uint32_t player,
                                        uint32_t method)
{
    static const uint32_t methods[] = { METHOD_RESERVE, METHOD_RESERVE, METHOD_GRANT };
    const struct sim_op *earlier =
        earlier_op(sim, player, methods, sim_chance(sim, 950) ? 1 : ARRAY_SIZE(methods));

    if (earlier == NULL || sim->player_count < 2)
        return NULL;
    uint32_t target = (uint32_t)(earlier - sim->ops);
    struct sim_op *op = op_new(sim, server, player, method);
    op->target = target;
    op->to = (player + 1 + op->amount % (sim->player_count - 1)) % sim->player_count;
    return op;
}

void economy_trace(struct sim *sim, uint32_t server)
{
    const char *uid = trace_pick_item(sim);

    if (uid == NULL)
        return;
    uint32_t shard = (uint32_t)sim_between(sim, 0, sim->shard_count - 1);
    struct sim_op *op = op_new(sim, server, shard, METHOD_ITEM_HISTORY);
    op->target = sim_chance(sim, 500) ? 0 : (uint32_t)sim_between(sim, 1, 4);
    snprintf(op->uid, sizeof op->uid, "%s", uid);
    op_call(sim, op);
}

struct sim_op *economy_wish(struct sim *sim, uint32_t server, uint32_t player)
{
    uint64_t dice = sim_between(sim, 0, 99);

    if (dice < 20)
        return consume(sim, server, player);
    if (dice < 40)
        return reverse(sim, server, player);
    if (dice < 60)
        return op_new(sim, server, player, METHOD_RESERVE);
    return close_reservation(sim, server, player, dice < 84 ? METHOD_POST : METHOD_VOID);
}
