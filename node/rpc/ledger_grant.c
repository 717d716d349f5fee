#include "idl/method.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"
#include "node/rpc/wallet.h"

static err ledger_grant_check(struct check_context *context, ProtobufCMessage *message)
{
    Holdfast__V1__GrantRequest *request = (Holdfast__V1__GrantRequest *)message;

    if (request->n_currencies + request->n_items == 0)
        return refuse_invalid(context->arena, context->refusal, "currencies",
                              "at least one currency or item", "");
    err e = wallet_amounts_check(context, request->n_currencies, request->currencies);
    if (e == ERR_OK)
        e = wallet_items_check(context, request->n_items, request->items);
    if (e == ERR_OK)
        e = wallet_reason_check(context, request->reason);
    return e;
}

static err ledger_grant_handle(struct apply_context *context, const ProtobufCMessage *message,
                               ProtobufCMessage *reply)
{
    const Holdfast__V1__GrantRequest *request = (const Holdfast__V1__GrantRequest *)message;
    Holdfast__V1__GrantResponse *response = (Holdfast__V1__GrantResponse *)reply;
    struct ledger_change changes[LEDGER_CHANGES_MAX];
    struct item_row items[LEDGER_ITEMS_MAX];

    err e = wallet_change(context, request->n_currencies, request->currencies, 1, changes);
    if (e != ERR_OK)
        return e;
    e = wallet_mint(context, request->n_items, request->items, items);
    if (e != ERR_OK)
        return e;
    struct ledger_entry entry = {
        .kind = HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_GRANT,
        .reason = slice_from_text(request->reason),
        .change_count = (uint32_t)request->n_currencies,
        .changes = changes,
        .item_count = (uint32_t)request->n_items,
        .items = items,
    };
    ledger_append(context, &entry);
    response->ledger_seq = context->player->ledger_seq;
    WALLET_TELL(context, request->n_currencies, changes, response);
    response->n_item_uids = request->n_items;
    response->item_uids = arena_alloc(context->arena, sizeof(char *) * (request->n_items + 1));
    for (size_t i = 0; i < request->n_items; i++) {
        response->item_uids[i] = arena_alloc(context->arena, ITEM_UID_TEXT_SIZE);
        item_uid_print(items[i].uid, response->item_uids[i]);
    }
    return ERR_OK;
}

const struct handler ledger_grant_handler = {
    .method = METHOD_GRANT,
    .admits = ADMITS_SESSION | ADMITS_SYSTEM | ADMITS_UNHELD,
    .receipts = ADMITS_SESSION | ADMITS_SYSTEM | ADMITS_UNHELD,
    .check = ledger_grant_check,
    .handle = ledger_grant_handle,
};
