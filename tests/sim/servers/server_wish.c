/* What game servers want of one player: a die says which method, its row what it is about. */
#include <stdio.h>
#include <string.h>

#include "idl/method.h"
#include "runtime/base/check.h"
#include "tests/sim/model/goods.h"
#include "tests/sim/servers/workload.h"

#define LOOK_BACK 200u
#define ODD_ONES  250u /* Of a thousand: on an item or an operation. */

const struct sim_op *server_earlier_op(struct sim *sim, uint32_t player,
                                       bool (*fits)(const struct sim *sim, uint32_t method))
{
    uint32_t span = sim->op_count < LOOK_BACK ? sim->op_count : LOOK_BACK;
    uint32_t from = span > 0 ? (uint32_t)sim_between(sim, 1, span) : 0;

    for (uint32_t back = from; back > 0; back--) {
        const struct sim_op *op = &sim->ops[sim->op_count - back];
        if (op->player == player && op->id[0] != '\0' && fits(sim, op->method))
            return op;
    }
    return NULL;
}

static struct sim_op *wish(struct sim *sim, uint32_t server, uint32_t player,
                           enum workload_wish what)
{
    uint32_t method = workload_draw(sim, what);
    const struct workload_row *row = workload_get(sim, method);
    struct workload_choice choice = { .wish = what, .player = player };

    if (row->choose != NULL && !row->choose(sim, &choice))
        return NULL;
    struct sim_op *op = op_new(sim, server, player, method);
    if (row->fill != NULL)
        CHECK(row->fill(sim, op, &choice)); /* What was chosen can be asked for. */
    return op;
}

struct sim_op *server_wish(struct sim *sim, uint32_t server, uint32_t player)
{
    struct sim_op *op = NULL;

    CHECK(player < sim->player_count);
    if (sim_chance(sim, ODD_ONES))
        op = wish(sim, server, player, WISH_LEDGER);
    return op != NULL ? op : wish(sim, server, player, WISH_WRITE);
}

void server_ask_on(struct sim *sim, const struct sim_op *op, const char *next_cursor)
{
    struct sim_op before = *op;

    if (next_cursor[0] == '\0' || sim->quiet)
        return;
    struct sim_op *next = op_new(sim, before.server, before.player, before.method);
    CHECK(strlen(next_cursor) < sizeof next->cursor);
    memcpy(next->cursor, next_cursor, strlen(next_cursor));
    memcpy(next->uid, before.uid, sizeof next->uid);
    next->twist = before.twist;
    next->amount = before.amount;
    next->target = before.target;
    next->around_ms = before.around_ms;
    op_call(sim, next);
}

void server_trace(struct sim *sim, uint32_t server)
{
    const char *uid = trace_pick_item(sim);

    if (uid == NULL)
        return;
    uint32_t shard = (uint32_t)sim_between(sim, 0, sim->shard_count - 1);
    uint32_t die = op_twist(sim->seed, sim->op_count) % 8;
    static const uint32_t looks[] = { METHOD_LIST_PLAYERS, METHOD_LIST_QUARANTINED,
                                      METHOD_GET_CHANNEL, METHOD_GET_BACKUP_STATE };
    if (looks[die % ARRAY_SIZE(looks)] == METHOD_GET_BACKUP_STATE && shard == 0)
        die = 0; /* No request is empty. */
    if (die < ARRAY_SIZE(looks) && (looks[die] != METHOD_GET_CHANNEL || sim->shard_count > 1)) {
        op_call(sim, op_new(sim, server, shard, looks[die]));
        return;
    }
    struct sim_op *op = op_new(sim, server, shard, METHOD_ITEM_HISTORY);
    op->target = sim_chance(sim, 500) ? 0 : (uint32_t)sim_between(sim, 1, 4);
    snprintf(op->uid, sizeof op->uid, "%s", uid);
    op_call(sim, op);
}
