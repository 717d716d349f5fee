#include "holdfast/internal/v1/mailbox.pb-c.h"
#include "idl/method.h"
#include "node/rpc/methods.h"
#include "node/rpc/new_mail.h"

typedef Holdfast__Internal__V1__DeliverToPlayerRequest deliver_request;

static struct new_mail mail_of(const ProtobufCMessage *message)
{
    const deliver_request *request = (const deliver_request *)message;

    return (struct new_mail){
        .currency_count = request->n_currencies,
        .currencies = request->currencies,
        .item_count = request->n_items,
        .items = request->items,
        .text = request->text,
        .reason = request->reason,
    };
}

static err mailbox_deliver_check(struct check_context *context, ProtobufCMessage *message)
{
    const struct new_mail mail = mail_of(message);

    return new_mail_check(context, &mail);
}

static void mailbox_deliver_footprint(const struct op *op, const ProtobufCMessage *message,
                                      struct need *keys)
{
    (void)message;
    new_mail_footprint(op, keys);
}

static err mailbox_deliver_handle(struct apply_context *context, const ProtobufCMessage *message,
                                  ProtobufCMessage *reply)
{
    const struct new_mail mail = mail_of(message);
    Holdfast__V1__MailDelivery *response = (Holdfast__V1__MailDelivery *)reply;
    struct new_mail_made made;

    err e = new_mail_put(context, &mail, &made);
    if (e != ERR_OK)
        return e;
    response->ledger_seq = made.ledger_seq;
    response->n_items = made.item_count;
    response->items = made.items;
    response->mail_id = made.mail_id;
    return ERR_OK;
}

const struct handler mailbox_deliver_to_player_handler = {
    .method = METHOD_DELIVER_TO_PLAYER,
    .admits = ADMITS_SYSTEM,
    .receipts = ADMITS_SYSTEM,
    .check = mailbox_deliver_check,
    .footprint = mailbox_deliver_footprint,
    .handle = mailbox_deliver_handle,
};
