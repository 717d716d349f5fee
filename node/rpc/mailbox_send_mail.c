#include "holdfast/v1/mailbox.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/goods/goods.h"
#include "node/core/goods/mailbox.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"
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

/* ---- from the game: new goods, into the home player's own mailbox ---- */

static err system_check(struct check_context *context, send_request *request)
{
    struct transfer mail = transfer_of(request);
    struct arena *arena = context->arena;

    if (request->to_player_id[0] != 0)
        return refuse_invalid(arena, context->refusal, "to_player_id",
                              "nothing: mail from the system goes to player_id",
                              request->to_player_id);
    if (request->n_item_uids > 0)
        return refuse_number(arena, context->refusal, "item_uids",
                             "none: mail from the system carries new items, in mint",
                             (int64_t)request->n_item_uids);
    if (request->expires_in_ms != 0)
        return refuse_number(arena, context->refusal, "expires_in_ms",
                             "0: mail from the system does not expire",
                             (int64_t)request->expires_in_ms);
    err e = wallet_amounts_check(context, request->n_currencies, request->currencies);
    if (e == ERR_OK)
        e = wallet_items_check(context, request->n_mint, request->mint);
    return e == ERR_OK ? transfer_text_check(context, &mail) : e;
}

/* Balances stay as they are until it is claimed. */
static void balances_note(struct apply_context *context, const send_request *request,
                          struct ledger_change *changes)
{
    for (size_t i = 0; i < request->n_currencies; i++) {
        struct slice name = slice_from_text(request->currencies[i]->currency);
        const struct balance *held = player_find_balance(context->player, name);
        changes[i] = (struct ledger_change){
            .currency = name,
            .amount = request->currencies[i]->amount,
            .balance_after = held != NULL ? held->amount : 0,
            .reserved_after = held != NULL && context->version >= 2 ? held->reserved : 0,
        };
    }
}

static void items_make(struct apply_context *context, const send_request *request,
                       struct item_row *items, Holdfast__V1__Mail *mail)
{
    mail->n_items = request->n_mint;
    mail->items = arena_alloc(context->arena, sizeof *mail->items * (request->n_mint + 1));
    for (size_t i = 0; i < request->n_mint; i++) {
        item_uid_make(context->shard, context->dot.epoch, context->dot.counter,
                      context->uid_place + (uint32_t)i, items[i].uid);
        items[i].step = 1;
        items[i].minted_at_ms = context->owner_ms;
        items[i].kind = slice_from_text(request->mint[i]->kind);
        items[i].attributes = slice_from_text(request->mint[i]->attributes);
        mail->items[i] = goods_item_message(context->arena, &items[i]);
    }
}

static err system_send(struct apply_context *context, const send_request *request,
                       send_response *response)
{
    Holdfast__V1__Mail mail = HOLDFAST__V1__MAIL__INIT;
    struct ledger_change changes[LEDGER_CHANGES_MAX];
    struct item_row items[LEDGER_ITEMS_MAX];

    err e = goods_places_check(context, request->n_mint + 1);
    if (e != ERR_OK)
        return e;
    items_make(context, request, items, &mail);
    mail.n_currencies = request->n_currencies;
    mail.currencies = request->currencies;
    mail.text = request->text;
    mail.reason = request->reason;
    mail.sent_at_ms = (int64_t)context->owner_ms;
    mail.op_id = arena_text(context->arena, context->op->id.text);
    e = mailbox_put(context, context->op->entity, &mail, context->uid_place,
                    context->meta->policy.mailbox_max);
    if (e != ERR_OK)
        return e;
    balances_note(context, request, changes);
    struct ledger_entry entry = {
        .kind = HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_MAIL,
        .reason = slice_from_text(request->reason),
        .change_count = (uint32_t)request->n_currencies,
        .changes = changes,
        .item_count = (uint32_t)request->n_mint,
        .items = items,
    };
    if (!goods_are_none(&mail)) {
        ledger_append(context, &entry);
        response->ledger_seq = context->player->ledger_seq;
    }
    response->n_items = mail.n_items;
    response->items = mail.items;
    response->mail_id = mail.mail_id;
    return ERR_OK;
}

/* ---- from a player ---- */

static err player_check(struct check_context *context, const send_request *request)
{
    struct transfer transfer = transfer_of(request);

    if (request->n_mint > 0)
        return refuse_number(context->arena, context->refusal, "mint",
                             "none: only mail from the system carries new items",
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

    if (request->n_currencies + request->n_item_uids + request->n_mint == 0 &&
        request->text[0] == 0)
        return refuse_invalid(context->arena, context->refusal, "text",
                              "goods or a text: at least one", "");
    if (context->authority == AUTHORITY_SYSTEM)
        return system_check(context, request);
    return player_check(context, request);
}

static void mailbox_send_footprint(const struct op *op, const ProtobufCMessage *message,
                                   struct need *keys)
{
    struct transfer transfer = transfer_of((const send_request *)message);
    struct row_key key;

    if (op->authority.kind != AUTHORITY_SYSTEM) {
        transfer_footprint(op, &transfer, keys);
        return;
    }
    row_key_mailbox(&key, op->entity);
    need_add_key(keys, row_key_slice(&key));
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
