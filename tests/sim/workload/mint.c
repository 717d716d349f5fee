/* Mint: an item comes to be. */
#include "holdfast/v1/inventory.pb-c.h"
#include "tests/sim/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__MintRequest request = HOLDFAST__V1__MINT_REQUEST__INIT;

    (void)sim;
    REQUEST_HEAD(request, op, parts);
    request.n_items = 1;
    request.items = parts->items;
    request_pack(&request.base, out);
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    const Holdfast__V1__MintResponse *told = (const void *)response;

    c->player->now.items++;
    op->item = goods_item_add(c, told->items[0]->uid, ITEM_HELD, model_player_number(c));
}

const struct workload_row workload_mint = {
    .method = METHOD_MINT,
    .shares = { [WISH_WRITE] = { .place = 3, .weight = 1 },
                [WISH_RECEIPT] = { .place = 1, .weight = 1 } },
    .reverse_tried = true,
    .encode = encode,
    .rule = { .system_admitted = true, .reversal = REVERSED_BY_TAKING, .effect = effect },
};
