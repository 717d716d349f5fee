/* InventoryService.TransferItems: an item goes to another player, by mail. */
#include <stdio.h>

#include "holdfast/v1/inventory.pb-c.h"
#include "tests/sim/servers/workload.h"

static bool fill(const struct sim *sim, struct sim_op *op, const struct workload_choice *choice)
{
    op->to = choice->to;
    if (choice->uid != NULL)
        snprintf(op->uid, sizeof op->uid, "%s", choice->uid);
    goods_pick_more(sim, op);
    return choice->uid != NULL;
}

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__TransferItemsRequest request = HOLDFAST__V1__TRANSFER_ITEMS_REQUEST__INIT;

    (void)sim;
    REQUEST_HEAD(request, op, parts);
    request.to_player_id = parts->to;
    request.item_uids = parts->uids;
    request.n_item_uids = parts->uid_count;
    request_pack(&request.base, out);
}

static void sends(const struct change *c, struct goods_wish *ret_wish)
{
    const Holdfast__V1__TransferItemsRequest *request = (const void *)c->request;

    ret_wish->to = model_player_of_id(request->to_player_id);
    goods_wish_items(c, request->n_item_uids, request->item_uids, ret_wish);
}

const struct workload_row workload_transfer_items = {
    .method = METHOD_TRANSFER_ITEMS,
    .shares = { [WISH_GOODS] = { .place = 1, .weight = 2 } },
    .instead = METHOD_TRANSFER_CURRENCIES,
    .fill = fill,
    .encode = encode,
    .rule = { .wants = WANTS_MAIL, .effect = goods_sent, .sends = sends },
};
