/* What a game server asks for under one op_id, and each call of it. */
#include <string.h>

#include "idl/method.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "tests/sim/model/goods.h"
#include "tests/sim/servers/workload.h"

#define OPS_MAX 20000u

void server_later(struct sim *sim, uint32_t place, uint64_t delay_ms, struct sim_event event)
{
    event.node = PROC_SERVER + place;
    event.life = sim->servers[place].life;
    sim_later(sim, delay_ms, &event);
}

/* Some servers write on condition: mostly on what stands now, as far as the log goes, and seldom on
 * what came before or after it. */
static void choose_if_version(struct sim *sim, struct sim_op *op)
{
    if (op->id[0] == '\0' || !sim_chance(sim, 60))
        return;
    const struct player_model *player = model_player(sim, slice_from_text(op->entity));
    uint64_t near = player->now.version + sim_between(sim, 0, 2);
    op->has_if_version = true;
    op->if_version = sim_chance(sim, 500) || near == 0 ? player->now.version : near - 1;
}

uint32_t op_twist(uint64_t seed, uint64_t number)
{
    uint8_t bytes[16];

    store_u64(bytes, seed);
    store_u64(bytes + 8, number);
    return (uint32_t)hash_u64((struct slice){ bytes, sizeof bytes });
}

struct sim_op *op_new(struct sim *sim, uint32_t server, uint32_t player, uint32_t method)
{
    CHECK(sim->op_count < OPS_MAX);
    if (sim->op_count == sim->op_capacity) {
        sim->op_capacity = sim->op_capacity > 0 ? sim->op_capacity * 2 : 512;
        sim->ops = mem_realloc(sim->ops, sizeof *sim->ops * sim->op_capacity);
    }
    struct sim_op *op = &sim->ops[sim->op_count++];
    memset(op, 0, sizeof *op);
    op->server = server;
    op->server_life = sim->servers[server].life;
    op->player = player;
    op->method = method;
    op->attempt = 1;
    op->amount = (uint32_t)sim_between(sim, 0, 9999);
    op->twist = op_twist(sim->seed, sim->op_count);
    if (method_find(method)->route == METHOD_MUTATION &&
        !workload_get(sim, method)->rule.about_another)
        sim_op_id(sim, op->id);
    player_entity(player, op->entity);
    choose_if_version(sim, op);
    incarnation_print(sim->servers[server].incarnation, op->incarnation);
    return op;
}

static void request_encode(const struct sim *sim, const struct sim_op *op, struct buf *out)
{
    const struct workload_row *row = workload_get(sim, op->method);
    struct request_parts parts;

    CHECK(row->encode != NULL); /* what game servers ask for */
    request_parts_fill(op, &parts);
    row->encode(sim, op, &parts, out);
    CHECK(out->size > 0);
}

void op_call(struct sim *sim, struct sim_op *op)
{
    uint64_t number = (uint64_t)(op - sim->ops);
    struct sim_event ask = {
        .kind = EV_ASK,
        .node = PROC_ROUTER + sim_between(sim, 0, sim->router_count - 1),
        .number = number,
    };

    if (op->call != 0)
        return;
    if (op->calls == 0)
        edit_choose(sim, op);
    ask.bytes = sim_queue_bytes(&sim->queue);
    op->call = ask.from = ++sim->calls;
    op->calls++;
    request_encode(sim, op, &ask.bytes);
    caller_append(sim, op, &ask.bytes);
    sim_later(sim, sim_between(sim, 0, 4), &ask);
    server_later(sim, op->server, server_patience_ms(sim, op),
                 (struct sim_event){ .kind = EV_GIVE_UP, .number = number, .from = op->call });
}

void op_call_later(struct sim *sim, const struct sim_op *op, uint64_t delay_ms)
{
    server_later(sim, op->server, delay_ms,
                 (struct sim_event){ .kind = EV_ACT, .number = (uint64_t)(op - sim->ops) + 1 });
}
