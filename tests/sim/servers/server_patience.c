/* Game servers that wait no longer: some calls are given up long before their time is over. Often
 * the router hears it, and tells the node; or it does not, and the call goes on for no one. Then
 * the server asks again, seals the operation, or never comes back to it. */
#include <string.h>

#include "idl/method.h"
#include "runtime/base/check.h"
#include "tests/sim/servers/workload.h"

#define PATIENCE_MS 4000u
#define HURRY_MS    700u
#define HURRIES     0x706174u /* Each die has its own number. */
#define QUEUES      0x717565u
#define QUEUE_OF    24u /* One of so many wishes begins a queue, ... */
#define QUEUE_LONG  3u  /* ... of so many. */
#define LOOKS_MAX   16u

static uint32_t die_of(const struct sim *sim, const struct sim_op *op)
{
    return op_twist(sim->seed ^ HURRIES, (uint64_t)(op - sim->ops) << 16 | op->calls);
}

static bool is_hurried(const struct sim *sim, const struct sim_op *op)
{
    return op->hurried || die_of(sim, op) % 1000 < sim->hurry;
}

uint64_t server_patience_ms(const struct sim *sim, const struct sim_op *op)
{
    if (sim->healing || !is_hurried(sim, op))
        return PATIENCE_MS;
    return (op->hurried ? 150 : 5) + die_of(sim, op) / 1000 % HURRY_MS;
}

bool server_walks_away(struct sim *sim, const struct sim_op *op)
{
    uint32_t die = die_of(sim, op) / 1000000;

    CHECK(op->call != 0);
    if (sim->healing || !is_hurried(sim, op))
        return false;
    sim->counts.calls_left++;
    if (die % 4 < (op->hurried ? 1u : 3u))
        router_caller_gone(sim, op);
    bool away = !op->hurried && die / 4 % 3 == 0;
    sim->counts.calls_abandoned += away;
    return away;
}

/* Some other servers want a player whose server gives it back soon. The first of them wants it no
 * more by then: the next one must get it. */
void server_queue_up(struct sim *sim, uint32_t server)
{
    uint32_t die = op_twist(sim->seed ^ QUEUES, sim->op_count);
    uint32_t player = die / QUEUE_OF % sim->player_count;
    uint32_t place = server, waiting = 0;

    if (sim->hurry == 0 || die % QUEUE_OF != 0 || !sim->servers[server].held[player].held)
        return;
    for (uint32_t i = 0; i < LOOKS_MAX && waiting < QUEUE_LONG; i++) {
        place = (place + 1) % sim->server_count;
        if (place == server || !sim->servers[place].up || !sim->servers[place].registered)
            continue;
        struct sim_op *op = op_new(sim, place, player, METHOD_START_SESSION);
        op->mode = HOLDFAST__V1__START_MODE__START_MODE_WAIT;
        op->hurried = waiting++ == 0;
        op_call(sim, op);
    }
    if (waiting < 2)
        return;
    sim->counts.queues++;
    struct sim_op *end = op_new(sim, server, player, METHOD_END_SESSION);
    memcpy(end->token, sim->servers[server].held[player].token, sizeof end->token);
    op_call_later(sim, end, 900 + die / 4096 % 500);
}
