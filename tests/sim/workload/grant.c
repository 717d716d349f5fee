/* Grant: currency comes to be. */
#include "tests/sim/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;

    (void)sim;
    REQUEST_HEAD(request, op, parts);
    request.n_currencies = 1;
    request.currencies = parts->amounts;
    request_pack(&request.base, out);
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    const Holdfast__V1__GrantRequest *request = (const void *)c->request;
    const Holdfast__V1__GrantResponse *told = (const void *)response;

    (void)op;
    model_change_balance(c, request->currencies[0], 1);
    model_check_balance(c, told->balances[0]);
}

const struct workload_row workload_grant = {
    .method = METHOD_GRANT,
    .shares = { [WISH_WRITE] = { .place = 0, .weight = 2 },
                [WISH_RECEIPT] = { .place = 0, .weight = 2 } },
    .reverse_tried = true,
    .encode = encode,
    .rule = { .system_admitted = true, .reversal = REVERSED_BY_TAKING, .effect = effect },
};
