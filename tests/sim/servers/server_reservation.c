/* Reservations: what game servers close, and when. Most are posted or voided, often in the very
 * moment in which their time is over. */
#include <string.h>

#include "idl/method.h"
#include "runtime/base/check.h"
#include "tests/sim/servers/workload.h"

#define LEFT_ALONE 100u /* Of a thousand; so their time closes them. */
#define CLOSES     400u /* Of a thousand wishes of one that has the session. */
#define POSTED     700u /* Of a thousand closings. */
#define AT_THE_END 500u
#define LOOK_BACK  150u
#define BEFORE_MS  60u /* An entry is logged some time after its request was sent. */
#define AFTER_MS   90u
#define SOON_MS    400u
#define TRIES_MAX  3u

static bool is_reservation(const struct sim *sim, uint32_t method)
{
    (void)sim;
    return method == METHOD_RESERVE_CURRENCIES;
}

static bool may_pass_for_one(const struct sim *sim, uint32_t method)
{
    return is_reservation(sim, method) || method == METHOD_GRANT;
}

bool server_choose_reservation(struct sim *sim, struct workload_choice *choice)
{
    bool strict = sim_chance(sim, 950);
    const struct sim_op *earlier =
        server_earlier_op(sim, choice->player, strict ? is_reservation : may_pass_for_one);

    if (earlier == NULL || sim->player_count < 2)
        return false;
    choice->target = (uint32_t)(earlier - sim->ops);
    return true;
}

bool server_fill_reservation(const struct sim *sim, struct sim_op *op,
                             const struct workload_choice *choice)
{
    CHECK(choice->target < sim->op_count && sim->player_count > 1);
    op->target = choice->target;
    op->to = (op->player + 1 + op->amount % (sim->player_count - 1)) % sim->player_count;
    return true;
}

int64_t server_reserved_amount(const struct sim_op *reserve)
{
    return 1 + reserve->amount / 2 % 12;
}

void server_sign(const struct sim *sim, struct sim_op *op)
{
    const struct held *held = &sim->servers[op->server].held[op->player];

    CHECK(op->calls == 0);
    op->authority = held->held                              ? BY_SESSION
                    : op->method == METHOD_VOID_RESERVATION ? BY_SYSTEM
                                                            : BY_UNHELD;
    memcpy(op->token, held->token, sizeof op->token);
}

/* That its server was told of. */
static const struct sim_op *newest(const struct sim *sim, uint32_t player)
{
    for (uint32_t back = 1; back <= sim->op_count && back <= LOOK_BACK; back++) {
        const struct sim_op *op = &sim->ops[sim->op_count - back];
        if (op->player == player && is_reservation(sim, op->method) && op->told_done)
            return op;
    }
    return NULL;
}

static struct sim_op *closing(struct sim *sim, uint32_t server, uint32_t target)
{
    uint32_t method = sim_chance(sim, POSTED) ? METHOD_POST_RESERVATION : METHOD_VOID_RESERVATION;
    const struct workload_choice choice = { .target = target };
    struct sim_op *op = op_new(sim, server, sim->ops[target].player, method);

    CHECK(server_fill_reservation(sim, op, &choice));
    return op;
}

void server_reserve(struct sim *sim, uint32_t server)
{
    uint32_t from = (uint32_t)sim_between(sim, 0, sim->player_count - 1);

    for (uint32_t i = 0; i < sim->player_count; i++) {
        uint32_t player = (from + i) % sim->player_count;
        const struct held *held = &sim->servers[server].held[player];
        if (!held->held)
            continue;
        const struct sim_op *reserved = sim_chance(sim, CLOSES) ? newest(sim, player) : NULL;
        struct sim_op *op = reserved != NULL
                                ? closing(sim, server, (uint32_t)(reserved - sim->ops))
                                : op_new(sim, server, player, METHOD_RESERVE_CURRENCIES);
        server_sign(sim, op);
        op_call(sim, op);
        return;
    }
}

/* Which of them the log has first is up to the network and the owner's clock. */
static void plan_closing(struct sim *sim, uint32_t target, uint64_t left_ms)
{
    uint64_t delay_ms = left_ms > BEFORE_MS ? left_ms - BEFORE_MS : 0;

    if (sim_chance(sim, AT_THE_END))
        delay_ms += sim_between(sim, 0, BEFORE_MS + AFTER_MS);
    else
        delay_ms = sim_between(sim, 0, SOON_MS);
    struct sim_op *op = closing(sim, sim->ops[target].server, target);
    op_call_later(sim, op, delay_ms + 1);
}

void server_plan_closings(struct sim *sim, const struct sim_op *reserve, uint64_t expires_ms)
{
    uint64_t unix_ms = SIM_UNIX_MS + sim->now_ms + sim->clock_ms;
    uint32_t target = (uint32_t)(reserve - sim->ops);

    if (sim->quiet || sim->player_count < 2 || expires_ms < unix_ms || sim_chance(sim, LEFT_ALONE))
        return;
    for (uint64_t i = sim_between(sim, 1, TRIES_MAX); i > 0; i--)
        plan_closing(sim, target, expires_ms - unix_ms);
}
