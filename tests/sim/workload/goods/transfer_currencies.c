/* LedgerService.TransferCurrencies: currency goes to another player, by mail. */
#include "tests/sim/servers/workload.h"

static bool fill(const struct sim *sim, struct sim_op *op, const struct workload_choice *choice)
{
    (void)sim;
    op->to = choice->to;
    return true;
}

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__TransferCurrenciesRequest request =
        HOLDFAST__V1__TRANSFER_CURRENCIES_REQUEST__INIT;

    (void)sim;
    REQUEST_HEAD(request, op, parts);
    request.to_player_id = parts->to;
    request.currencies = parts->amounts;
    request.n_currencies = parts->amount_count;
    if (op->twist / 16 % 4 == 0) {
        request_large(op, parts);
        request.n_currencies = 1;
    }
    request_pack(&request.base, out);
}

static void sends(const struct change *c, struct goods_wish *ret_wish)
{
    const Holdfast__V1__TransferCurrenciesRequest *request = (const void *)c->request;

    ret_wish->to = model_player_of_id(request->to_player_id);
    goods_wish_currencies(c, request->n_currencies, request->currencies, ret_wish);
}

const struct workload_row workload_transfer_currencies = {
    .method = METHOD_TRANSFER_CURRENCIES,
    .shares = { [WISH_GOODS] = { .place = 0, .weight = 1 } },
    .fill = fill,
    .encode = encode,
    .rule = { .wants = WANTS_FUNDS_AND_MAIL, .effect = goods_sent, .sends = sends },
};
