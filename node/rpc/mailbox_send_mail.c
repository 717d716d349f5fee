#include "holdfast/v1/mailbox.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"
#include "node/rpc/new_mail.h"
#include "node/rpc/transfer.h"
#include "node/rpc/wallet.h"

typedef Holdfast__V1__SendMailRequest send_request;
typedef Holdfast__V1__SendMailResponse send_response;

static struct transfer transfer_of(const send_request *request)
{
    return (struct transfer){
        .player_id = request->player_id,
        .to_player_id = request->to_player_id,
        .currency_count = request->n_currencies,
        .currencies = request->currencies,
        .uid_count = request->n_item_uids,
        .uids = request->item_uids,
        .text = request->text,
        .reason = request->reason,
        .expires_in_ms = request->expires_in_ms,
    };
}

/* ---- from the game: only in logs of earlier programs; DeliverMail does it today ---- */

static err system_send(struct apply_context *context, const send_request *request,
                       send_response *response)
{
    const struct new_mail mail = {
        .currency_count = request->n_currencies,
        .currencies = request->currencies,
        .item_count = request->n_mint,
        .items = request->mint,
        .text = request->text,
        .reason = request->reason,
    };
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

/* ---- from a player ---- */

static err player_check(struct check_context *context, const send_request *request)
{
    struct transfer transfer = transfer_of(request);

    if (request->n_mint > 0)
        return refuse_number(
            context->arena, context->refusal, "mint",
            "UIDs of the player's own items: MailboxService.DeliverMail makes new ones",
            (int64_t)request->n_mint);
    return transfer_check(context, &transfer);
}

static err player_send(struct apply_context *context, const send_request *request,
                       send_response *response)
{
    struct transfer transfer = transfer_of(request);
    struct transfer_taken taken;

    err e = transfer_take(context, &transfer, &taken);
    if (e != ERR_OK)
        return e;
    response->ledger_seq = taken.ledger_seq;
    WALLET_TELL(context, transfer.currency_count, taken.changes, response);
    response->n_items = transfer.uid_count;
    response->items = taken.items;
    return transfer_send(context, &transfer, &taken, &response->base, &response->mail_id);
}

static err mailbox_send_mail_check(struct check_context *context, ProtobufCMessage *message)
{
    send_request *request = (send_request *)message;

    if (context->authority == AUTHORITY_SYSTEM)
        return refuse_invalid(context->arena, context->refusal, "authority",
                              "session:<token> or unheld: a player's goods are sent; "
                              "MailboxService.DeliverMail makes what the system gives",
                              "system");
    if (request->n_currencies + request->n_item_uids + request->n_mint == 0 &&
        request->text[0] == 0)
        return refuse_invalid(context->arena, context->refusal, "text",
                              "goods or a text: at least one", "");
    return player_check(context, request);
}

static void mailbox_send_footprint(const struct op *op, const ProtobufCMessage *message,
                                   struct need *keys)
{
    struct transfer transfer = transfer_of((const send_request *)message);

    if (op->authority.kind != AUTHORITY_SYSTEM) {
        transfer_footprint(op, &transfer, keys);
        return;
    }
    new_mail_footprint(op, keys);
}

static err mailbox_send_handle(struct apply_context *context, const ProtobufCMessage *message,
                               ProtobufCMessage *reply)
{
    const send_request *request = (const send_request *)message;

    if (context->op->authority.kind == AUTHORITY_SYSTEM)
        return system_send(context, request, (send_response *)reply);
    return player_send(context, request, (send_response *)reply);
}

const struct handler mailbox_send_mail_handler = {
    .method = METHOD_SEND_MAIL,
    .admits = ADMITS_SESSION | ADMITS_SYSTEM | ADMITS_UNHELD,
    .receipts = ADMITS_SYSTEM,
    .check = mailbox_send_mail_check,
    .footprint = mailbox_send_footprint,
    .handle = mailbox_send_handle,
};
