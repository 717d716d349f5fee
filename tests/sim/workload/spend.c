/* Spend: currency is gone. */
#include "tests/sim/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__SpendRequest request = HOLDFAST__V1__SPEND_REQUEST__INIT;

    (void)sim;
    REQUEST_HEAD(request, op, parts);
    request.n_currencies = 1;
    request.currencies = parts->amounts;
    request_pack(&request.base, out);
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    const Holdfast__V1__SpendRequest *request = (const void *)c->request;
    const Holdfast__V1__SpendResponse *told = (const void *)response;

    (void)op;
    model_change_balance(c, request->currencies[0], -1);
    model_check_balance(c, told->balances[0]);
}

const struct workload_row workload_spend = {
    .method = METHOD_SPEND,
    .shares = { [WISH_WRITE] = { .place = 1, .weight = 1 } },
    .reverse_tried = true,
    .encode = encode,
    .rule = { .reversal = REVERSED_BY_GIVING, .effect = effect },
};
