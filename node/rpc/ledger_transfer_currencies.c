#include "idl/method.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"
#include "node/rpc/transfer.h"
#include "node/rpc/wallet.h"

static struct transfer transfer_of(const ProtobufCMessage *message)
{
    const Holdfast__V1__TransferCurrenciesRequest *request =
        (const Holdfast__V1__TransferCurrenciesRequest *)message;

    return (struct transfer){
        .player_id = request->player_id,
        .to_player_id = request->to_player_id,
        .currency_count = request->n_currencies,
        .currencies = request->currencies,
        .text = "",
        .reason = request->reason,
    };
}

static err ledger_transfer_currencies_check(struct check_context *context,
                                            ProtobufCMessage *message)
{
    struct transfer transfer = transfer_of(message);

    if (transfer.currency_count == 0)
        return refuse_invalid(context->arena, context->refusal, "currencies", "1 to 16 currencies",
                              "");
    return transfer_check(context, &transfer);
}

static void ledger_transfer_footprint(const struct op *op, const ProtobufCMessage *message,
                                      struct need *keys)
{
    struct transfer transfer = transfer_of(message);
    transfer_footprint(op, &transfer, keys);
}

static err ledger_transfer_handle(struct apply_context *context, const ProtobufCMessage *message,
                                  ProtobufCMessage *reply)
{
    Holdfast__V1__TransferCurrenciesResponse *response =
        (Holdfast__V1__TransferCurrenciesResponse *)reply;
    struct transfer transfer = transfer_of(message);
    struct transfer_taken taken;

    err e = transfer_take(context, &transfer, &taken);
    if (e != ERR_OK)
        return e;
    response->ledger_seq = taken.ledger_seq;
    WALLET_TELL(context, transfer.currency_count, taken.changes, response);
    return transfer_send(context, &transfer, &taken, &response->base, &response->mail_id);
}

const struct handler ledger_transfer_currencies_handler = {
    .method = METHOD_TRANSFER_CURRENCIES,
    .admits = ADMITS_SESSION | ADMITS_UNHELD,
    .check = ledger_transfer_currencies_check,
    .footprint = ledger_transfer_footprint,
    .handle = ledger_transfer_handle,
};
