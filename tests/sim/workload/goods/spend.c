/* Spend: currency is gone, or an item, or both. */
#include <stdio.h>

#include "runtime/base/check.h"
#include "tests/sim/servers/workload.h"

static bool choose(struct sim *sim, struct workload_choice *choice)
{
    if (choice->wish == WISH_LEDGER)
        choice->uid = goods_pick_item(sim, choice->player);
    return choice->wish == WISH_WRITE || choice->uid != NULL;
}

static bool fill(const struct sim *sim, struct sim_op *op, const struct workload_choice *choice)
{
    if (choice->uid != NULL)
        snprintf(op->uid, sizeof op->uid, "%s", choice->uid);
    goods_pick_more(sim, op);
    return true;
}

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__SpendRequest request = HOLDFAST__V1__SPEND_REQUEST__INIT;
    bool has_item = op->uid[0] != '\0';

    (void)sim;
    REQUEST_HEAD(request, op, parts);
    request.currencies = parts->amounts;
    request.n_currencies = !has_item || op->amount % 8 == 0 ? parts->amount_count : 0;
    request.item_uids = parts->uids;
    request.n_item_uids = parts->uid_count;
    request_pack(&request.base, out);
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    const Holdfast__V1__SpendRequest *request = (const void *)c->request;
    const Holdfast__V1__SpendResponse *told = (const void *)response;

    CHECK(request->n_currencies + request->n_item_uids > 0);
    model_change_balances(c, request->n_currencies, request->currencies, -1);
    model_check_balances(c, request->n_currencies, request->currencies, told->n_balances,
                         told->balances);
    CHECK(request->n_item_uids <= SIM_GOODS_ITEMS);
    for (size_t i = 0; i < request->n_item_uids; i++) {
        c->sim->counts.items_spent++;
        op->items[i] = goods_item_find(&c->sim->oracle->book, request->item_uids[i]);
        model_item_goes(c, op, op->items[i]);
    }
    op->item_count = (uint32_t)request->n_item_uids;
}

const struct workload_row workload_spend = {
    .method = METHOD_SPEND,
    .shares = { [WISH_WRITE] = { .place = 1, .weight = 1 },
                [WISH_LEDGER] = { .place = 0, .weight = 26 } },
    .reverse_tried = true,
    .choose = choose,
    .fill = fill,
    .encode = encode,
    .rule = { .reversal = REVERSED_BY_GIVING, .wants = WANTS_FUNDS, .effect = effect },
};
