/* Reserve: currency is set aside for some time. */
#include "runtime/base/check.h"
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__ReserveCurrenciesRequest request = HOLDFAST__V1__RESERVE_CURRENCIES_REQUEST__INIT;

    (void)sim;
    REQUEST_HEAD(request, op, parts);
    request.n_currencies = parts->amount_count;
    parts->amount.amount = server_reserved_amount(op);
    request.currencies = parts->amounts;
    request.expires_in_ms = 1000 + op->amount % (op->amount % 4 > 0 ? 600 : 4000);
    if (op->twist % 32 < 2)
        request.expires_in_ms = 999 + op->twist % 2;
    request_pack(&request.base, out);
}

static void taken(struct sim *sim, const struct sim_op *op, struct slice body)
{
    Holdfast__V1__ReserveCurrenciesResponse *response =
        holdfast__v1__reserve_currencies_response__unpack(NULL, body.size, body.data);

    CHECK(response != NULL);
    server_plan_closings(sim, op, (uint64_t)response->expires_at_ms);
    holdfast__v1__reserve_currencies_response__free_unpacked(response, NULL);
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    const Holdfast__V1__ReserveCurrenciesRequest *request = (const void *)c->request;
    const Holdfast__V1__ReserveCurrenciesResponse *told = (const void *)response;
    struct goods *goods = &op->set_aside;

    c->sim->counts.reservations++;
    for (size_t i = 0; i < request->n_currencies; i++)
        goods->amounts[model_currency(request->currencies[i]->currency)] +=
            request->currencies[i]->amount;
    op->expires_ms = c->entry->owner_ms + request->expires_in_ms;
    op->ledger_seq = told->ledger_seq;
    op->player = model_player_number(c);
    op->open = true;
    c->player->now.reservations++;
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++) {
        c->player->now.balances[i] -= goods->amounts[i];
        c->player->now.reserved[i] += goods->amounts[i];
        if (goods->amounts[i] > 0 && c->player->now.balances[i] < policy_least(c, i))
            model_fail_op(c, op, "reserves what is not there");
    }
    model_check_balances(c, request->n_currencies, request->currencies, told->n_balances,
                         told->balances);
    if ((uint64_t)told->expires_at_ms != op->expires_ms)
        model_fail_op(c, op, "is reserved until another time");
}

const struct workload_row workload_reserve_currencies = {
    .method = METHOD_RESERVE_CURRENCIES,
    .shares = { [WISH_LEDGER] = { .place = 2, .weight = 20 } },
    .reverse_tried = true, /* In vain. */
    .encode = encode,
    .taken = taken,
    .rule = { .wants = WANTS_FUNDS, .effect = effect },
};
