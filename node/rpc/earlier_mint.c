/* Mint of earlier versions: Grant does its deed today. */
#include "holdfast/internal/v1/earlier.pb-c.h"
#include "idl/method.h"
#include "node/core/goods/goods.h"
#include "node/rpc/methods.h"
#include "node/rpc/wallet.h"

/* Of operations that stand in a log: the owner that proposed them has checked them. */
static err earlier_mint_handle(struct apply_context *context, const ProtobufCMessage *message,
                               ProtobufCMessage *reply)
{
    const Holdfast__Internal__V1__MintRequest *request =
        (const Holdfast__Internal__V1__MintRequest *)message;
    Holdfast__Internal__V1__MintResponse *response = (Holdfast__Internal__V1__MintResponse *)reply;
    struct item_row items[LEDGER_ITEMS_MAX];

    err e = wallet_mint(context, request->n_items, request->items, items);
    if (e != ERR_OK)
        return e;
    struct ledger_entry entry = {
        .kind = HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_MINT,
        .reason = slice_from_text(request->reason),
        .item_count = (uint32_t)request->n_items,
        .items = items,
    };
    ledger_append(context, &entry);
    response->ledger_seq = context->player->ledger_seq;
    response->n_items = request->n_items;
    response->items = goods_item_messages(context->arena, request->n_items, items);
    return ERR_OK;
}

const struct handler earlier_mint_handler = {
    .method = METHOD_MINT,
    .admits = ADMITS_SESSION | ADMITS_SYSTEM | ADMITS_UNHELD,
    .receipts = ADMITS_SESSION | ADMITS_SYSTEM | ADMITS_UNHELD,
    .handle = earlier_mint_handle,
};
