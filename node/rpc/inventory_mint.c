#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/goods/goods.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"
#include "node/rpc/wallet.h"

static err inventory_mint_check(struct check_context *context, ProtobufCMessage *message)
{
    Holdfast__V1__MintRequest *request = (Holdfast__V1__MintRequest *)message;

    if (request->n_items == 0)
        return refuse_invalid(context->arena, context->refusal, "items", "1 to 64 items", "");
    err e = wallet_items_check(context, request->n_items, request->items);
    return e == ERR_OK ? wallet_reason_check(context, request->reason) : e;
}

static err inventory_mint_handle(struct apply_context *context, const ProtobufCMessage *message,
                                 ProtobufCMessage *reply)
{
    const Holdfast__V1__MintRequest *request = (const Holdfast__V1__MintRequest *)message;
    Holdfast__V1__MintResponse *response = (Holdfast__V1__MintResponse *)reply;
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
    response->items = arena_alloc(context->arena, sizeof *response->items * request->n_items);
    for (size_t i = 0; i < request->n_items; i++)
        response->items[i] = goods_item_message(context->arena, &items[i]);
    return ERR_OK;
}

const struct handler inventory_mint_handler = {
    .method = METHOD_MINT,
    .admits = ADMITS_SESSION | ADMITS_SYSTEM | ADMITS_UNHELD,
    .receipts = ADMITS_SESSION | ADMITS_SYSTEM | ADMITS_UNHELD,
    .check = inventory_mint_check,
    .handle = inventory_mint_handle,
};
