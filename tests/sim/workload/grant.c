/* Grant: currency comes to be, or an item, or both. */
#include "tests/sim/workload.h"

/* Of six grants one is of an item, and one of both. Receipts have amounts that 3 divides. */
static bool has_item(const struct sim_op *op)
{
    return op->amount / 3 % 6 > 3;
}

static bool has_currency(const struct sim_op *op)
{
    return op->amount / 3 % 6 != 4;
}

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;

    (void)sim;
    REQUEST_HEAD(request, op, parts);
    request.currencies = parts->amounts;
    request.n_currencies = has_currency(op);
    parts->item.attributes = parts->json; /* Another amount is another request. */
    request.items = parts->items;
    request.n_items = has_item(op);
    request_pack(&request.base, out);
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    const Holdfast__V1__GrantRequest *request = (const void *)c->request;
    const Holdfast__V1__GrantResponse *told = (const void *)response;

    if (request->n_currencies > 0) {
        model_change_balance(c, request->currencies[0], 1);
        model_check_balance(c, told->balances[0]);
    }
    if (request->n_items > 0) {
        c->player->now.items++;
        op->item = goods_item_add(c, told->item_uids[0], ITEM_HELD, model_player_number(c));
    }
}

const struct workload_row workload_grant = {
    .method = METHOD_GRANT,
    .shares = { [WISH_WRITE] = { .place = 0, .weight = 3 },
                [WISH_RECEIPT] = { .place = 0, .weight = 3 } },
    .reverse_tried = true,
    .encode = encode,
    .rule = { .system_admitted = true, .reversal = REVERSED_BY_TAKING, .effect = effect },
};
