#include "idl/method.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"
#include "node/rpc/transfer.h"

static struct transfer transfer_of(const ProtobufCMessage *message)
{
    const Holdfast__V1__TransferItemsRequest *request =
        (const Holdfast__V1__TransferItemsRequest *)message;

    return (struct transfer){
        .player_id = request->player_id,
        .to_player_id = request->to_player_id,
        .uid_count = request->n_item_uids,
        .uids = request->item_uids,
        .text = "",
        .reason = request->reason,
    };
}

static err inventory_transfer_items_check(struct check_context *context, ProtobufCMessage *message)
{
    struct transfer transfer = transfer_of(message);

    if (transfer.uid_count == 0)
        return refuse_invalid(context->arena, context->refusal, "item_uids", "1 to 64 items", "");
    return transfer_check(context, &transfer);
}

static void inventory_transfer_footprint(const struct op *op, const ProtobufCMessage *message,
                                         struct need *keys)
{
    struct transfer transfer = transfer_of(message);
    transfer_footprint(op, &transfer, keys);
}

static err inventory_transfer_handle(struct apply_context *context, const ProtobufCMessage *message,
                                     ProtobufCMessage *reply)
{
    Holdfast__V1__TransferItemsResponse *response = (Holdfast__V1__TransferItemsResponse *)reply;
    struct transfer transfer = transfer_of(message);
    struct transfer_taken taken;

    err e = transfer_take(context, &transfer, &taken);
    if (e != ERR_OK)
        return e;
    response->ledger_seq = taken.ledger_seq;
    response->n_items = transfer.uid_count;
    response->items = taken.items;
    return transfer_send(context, &transfer, &taken, &response->base, &response->mail_id);
}

const struct handler inventory_transfer_items_handler = {
    .method = METHOD_TRANSFER_ITEMS,
    .admits = ADMITS_SESSION | ADMITS_UNHELD,
    .check = inventory_transfer_items_check,
    .footprint = inventory_transfer_footprint,
    .handle = inventory_transfer_handle,
};
