#include "idl/method.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"
#include "node/rpc/wallet.h"

static err ledger_spend_check(struct check_context *context, ProtobufCMessage *message)
{
    Holdfast__V1__SpendRequest *request = (Holdfast__V1__SpendRequest *)message;

    if (request->n_currencies == 0)
        return refuse_invalid(context->arena, context->refusal, "currencies", "1 to 16 currencies",
                              "");
    err e = wallet_amounts_check(context, request->n_currencies, request->currencies);
    return e == ERR_OK ? wallet_reason_check(context, request->reason) : e;
}

static err ledger_spend_handle(struct apply_context *context, const ProtobufCMessage *message,
                               ProtobufCMessage *reply)
{
    const Holdfast__V1__SpendRequest *request = (const Holdfast__V1__SpendRequest *)message;
    Holdfast__V1__SpendResponse *response = (Holdfast__V1__SpendResponse *)reply;
    struct ledger_change changes[LEDGER_CHANGES_MAX];

    err e = wallet_change(context, request->n_currencies, request->currencies, -1, changes);
    if (e != ERR_OK)
        return e;
    struct ledger_entry entry = {
        .kind = HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_SPEND,
        .reason = slice_from_text(request->reason),
        .change_count = (uint32_t)request->n_currencies,
        .changes = changes,
    };
    ledger_append(context, &entry);
    response->ledger_seq = context->player->ledger_seq;
    response->n_balances = request->n_currencies;
    response->balances = wallet_balances(context->arena, request->n_currencies, changes);
    return ERR_OK;
}

const struct handler ledger_spend_handler = {
    .method = METHOD_SPEND,
    .admits = ADMITS_SESSION | ADMITS_UNHELD,
    .check = ledger_spend_check,
    .handle = ledger_spend_handle,
};
