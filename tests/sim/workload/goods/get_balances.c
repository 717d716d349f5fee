/* GetBalances: what a player has and has set aside, as of some entry. */
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__GetBalancesRequest request = HOLDFAST__V1__GET_BALANCES_REQUEST__INIT;

    (void)sim;
    request.player_id = parts->player;
    request.read = request_read(op, parts);
    request_pack(&request.base, out);
}

static void told(const struct told *t)
{
    const Holdfast__V1__GetBalancesResponse *response = (const void *)t->response;
    uint64_t index = told_index(t);
    const struct moment *moment = told_moment(t, index);

    if (index == 0)
        return;
    if (response->version != moment->version)
        told_fail(t, "the version", response->version, moment->version);
    told_balances(t, response->n_balances, response->balances, moment);
    told_reserved(t, response->n_reserved, response->reserved, moment);
}

const struct workload_row workload_get_balances = {
    .method = METHOD_GET_BALANCES,
    .shares = { [WISH_READ] = { .place = 1, .weight = 7 } },
    .encode = encode,
    .rule = { .told = told },
};
