/* Swap: two players exchange goods. */
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__Internal__V1__SwapGoodsRequest request =
        HOLDFAST__INTERNAL__V1__SWAP_GOODS_REQUEST__INIT;
    struct request_txn_parts t;

    request_txn_parts_fill(op, parts, &t);
    REQUEST_HEAD(request, op, parts);
    request.other_player_id = t.names[0];
    request.other_authority = t.authorities[0];
    request.currencies = t.amounts;
    request.n_currencies = t.amount_count;
    if (sim->large_swaps && op->twist / 32 % 4 == 0) {
        request_large(op, parts);
        t.amount = parts->amount;
        request.n_currencies = 1;
    }
    request.item_uids = t.uids;
    request.n_item_uids = t.uid_count;
    request.other_currencies = t.other_amounts;
    request.n_other_currencies = op->amount % 3 > 0 ? t.amount_count : 0;
    request.other_item_uids = t.other_uids;
    request.n_other_item_uids = op->other_uid[0] != '\0';
    request_pack(&request.base, out);
}

static void plans(const struct change *c, struct txn_model *txn)
{
    const Holdfast__Internal__V1__SwapGoodsRequest *r = (const void *)c->request;
    struct txn_part_model *home = plan_part(txn, r->player_id);
    struct txn_part_model *other = plan_other(txn, r->other_player_id, r->other_authority);

    if (c->outcome->kind == OUTCOME_COMMITTED && r->n_currencies > 0)
        c->sim->counts.swaps_large += r->currencies[0]->amount > (int64_t)1 << 46;
    plan_move(home, other, r->n_currencies, r->currencies);
    plan_items(c, home, other, r->n_item_uids, r->item_uids);
    plan_move(other, home, r->n_other_currencies, r->other_currencies);
    plan_items(c, other, home, r->n_other_item_uids, r->other_item_uids);
}

const struct workload_row workload_swap_goods = {
    .method = METHOD_SWAP_GOODS,
    .shares = { [WISH_TRADE] = { .place = 0, .weight = 500 } },
    .others_max = 1,
    .encode = encode,
    .rule = { .plans = plans },
};
