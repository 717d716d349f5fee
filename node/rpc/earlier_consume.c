/* Consume of earlier versions: Spend does its deed today. */
#include "holdfast/internal/v1/earlier.pb-c.h"
#include "idl/method.h"
#include "node/core/goods/goods.h"
#include "node/rpc/item_uids.h"
#include "node/rpc/methods.h"
#include "node/rpc/wallet.h"

/* Of operations that stand in a log: the owner that proposed them has checked them. */
static void earlier_consume_footprint(const struct op *op, const ProtobufCMessage *message,
                                      struct need *keys)
{
    const Holdfast__Internal__V1__ConsumeRequest *request =
        (const Holdfast__Internal__V1__ConsumeRequest *)message;

    item_uids_footprint(op, request->n_item_uids, request->item_uids, keys);
}

static err earlier_consume_handle(struct apply_context *context, const ProtobufCMessage *message,
                                  ProtobufCMessage *reply)
{
    const Holdfast__Internal__V1__ConsumeRequest *request =
        (const Holdfast__Internal__V1__ConsumeRequest *)message;
    Holdfast__Internal__V1__ConsumeResponse *response =
        (Holdfast__Internal__V1__ConsumeResponse *)reply;
    struct ledger_change changes[LEDGER_CHANGES_MAX];
    struct item_row items[LEDGER_ITEMS_MAX];

    err e = goods_take_items(context, request->n_item_uids, request->item_uids, items);
    if (e == ERR_OK)
        e = wallet_change(context, request->n_currencies, request->currencies, -1, changes);
    if (e != ERR_OK)
        return e;
    struct ledger_entry entry = {
        .kind = HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_CONSUME,
        .reason = slice_from_text(request->reason),
        .change_count = (uint32_t)request->n_currencies,
        .changes = changes,
        .item_count = (uint32_t)request->n_item_uids,
        .items = items,
        .items_taken = request->n_item_uids > 0,
    };
    ledger_append(context, &entry);
    response->ledger_seq = context->player->ledger_seq;
    struct balance_list list = wallet_balances(context, request->n_currencies, changes);
    response->n_balances = list.balance_count;
    response->balances = list.balances; /* No owner of a later version logs it: all is in these. */
    response->n_items = request->n_item_uids;
    response->items = goods_item_messages(context->arena, request->n_item_uids, items);
    return ERR_OK;
}

const struct handler earlier_consume_handler = {
    .method = METHOD_CONSUME,
    .admits = ADMITS_SESSION | ADMITS_UNHELD,
    .footprint = earlier_consume_footprint,
    .handle = earlier_consume_handle,
};
