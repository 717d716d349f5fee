#include "idl/method.h"
#include "node/core/goods/goods.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/item_uids.h"
#include "node/rpc/methods.h"
#include "node/rpc/wallet.h"

static err ledger_spend_check(struct check_context *context, ProtobufCMessage *message)
{
    Holdfast__V1__SpendRequest *request = (Holdfast__V1__SpendRequest *)message;

    if (request->n_currencies + request->n_item_uids == 0)
        return refuse_invalid(context->arena, context->refusal, "currencies",
                              "at least one currency or item", "");
    err e = item_uids_check(context, request->n_item_uids, request->item_uids);
    if (e == ERR_OK)
        e = wallet_amounts_check(context, request->n_currencies, request->currencies);
    if (e == ERR_OK)
        e = wallet_reason_check(context, request->reason);
    return e;
}

/* An owner of an earlier version knew no such field, and logged whatever bytes a caller had there.
 * It took none. */
static size_t items_of(const Holdfast__V1__SpendRequest *request)
{
    return item_uids_are_sound(request->n_item_uids, request->item_uids) ? request->n_item_uids : 0;
}

static void ledger_spend_footprint(const struct op *op, const ProtobufCMessage *message,
                                   struct need *keys)
{
    const Holdfast__V1__SpendRequest *request = (const Holdfast__V1__SpendRequest *)message;

    item_uids_footprint(op, items_of(request), request->item_uids, keys);
}

static err ledger_spend_handle(struct apply_context *context, const ProtobufCMessage *message,
                               ProtobufCMessage *reply)
{
    const Holdfast__V1__SpendRequest *request = (const Holdfast__V1__SpendRequest *)message;
    Holdfast__V1__SpendResponse *response = (Holdfast__V1__SpendResponse *)reply;
    struct ledger_change changes[LEDGER_CHANGES_MAX];
    struct item_row items[LEDGER_ITEMS_MAX];
    size_t item_count = items_of(request);

    err e = goods_take_items(context, item_count, request->item_uids, items);
    if (e == ERR_OK)
        e = wallet_change(context, request->n_currencies, request->currencies, -1, changes);
    if (e != ERR_OK)
        return e;
    struct ledger_entry entry = {
        .kind = HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_SPEND,
        .reason = slice_from_text(request->reason),
        .change_count = (uint32_t)request->n_currencies,
        .changes = changes,
        .item_count = (uint32_t)item_count,
        .items = items,
        .items_taken = item_count > 0,
    };
    ledger_append(context, &entry);
    response->ledger_seq = context->player->ledger_seq;
    WALLET_TELL(context, request->n_currencies, changes, response);
    response->n_items = item_count;
    response->items = goods_item_messages(context->arena, item_count, items);
    return ERR_OK;
}

const struct handler ledger_spend_handler = {
    .method = METHOD_SPEND,
    .admits = ADMITS_SESSION | ADMITS_UNHELD,
    .check = ledger_spend_check,
    .footprint = ledger_spend_footprint,
    .handle = ledger_spend_handle,
};
