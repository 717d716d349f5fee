#include "node/rpc/new_mail.h"

#include "node/core/codec/arena_proto.h"
#include "node/core/goods/goods.h"
#include "node/core/goods/mailbox.h"
#include "node/core/goods/wallet_change.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/transfer.h"
#include "node/rpc/wallet.h"

err new_mail_check(struct check_context *context, const struct new_mail *mail)
{
    const struct transfer transfer = { .text = mail->text, .reason = mail->reason };

    if (mail->currency_count + mail->item_count == 0 && mail->text[0] == 0)
        return refuse_invalid(context->arena, context->refusal, "text",
                              "goods or a text: at least one", "");
    err e = wallet_amounts_check(context, mail->currency_count, mail->currencies);
    if (e == ERR_OK)
        e = wallet_items_check(context, mail->item_count, mail->items);
    return e == ERR_OK ? transfer_text_check(context, &transfer) : e;
}

void new_mail_footprint(const struct op *op, struct need *keys)
{
    struct row_key key;

    row_key_mailbox(&key, op->entity);
    need_add_key(keys, row_key_slice(&key));
}

/* What a repetition may bring (refusal_defer), or a policy that changed since the check. */
static err currencies_check(struct apply_context *context, const struct new_mail *wanted)
{
    err e = ERR_OK;

    if (context->version < DEFER_APPLY_VERSION)
        return ERR_OK;
    for (size_t i = 0; i < wanted->currency_count && e == ERR_OK; i++) {
        const char *name = wanted->currencies[i]->currency;

        e = wallet_currency_check(context->arena, context->refusal, &context->meta->policy,
                                  entry_field_applied(context, "currencies", i, name, "currency"),
                                  name);
    }
    return e;
}

/* Balances stay as they are until it is claimed. */
static void balances_note(struct apply_context *context, const struct new_mail *wanted,
                          struct ledger_change *changes)
{
    for (size_t i = 0; i < wanted->currency_count; i++) {
        struct slice name = slice_from_text(wanted->currencies[i]->currency);
        const struct balance *held = player_find_balance(context->player, name);
        changes[i] = (struct ledger_change){
            .currency = name,
            .amount = wanted->currencies[i]->amount,
            .balance_after = held != NULL ? held->amount : 0,
            .reserved_after = held != NULL && context->version >= 2 ? held->reserved : 0,
        };
    }
}

static void items_make(struct apply_context *context, const struct new_mail *wanted,
                       struct item_row *items, Holdfast__V1__Mail *mail)
{
    mail->n_items = wanted->item_count;
    mail->items = arena_alloc(context->arena, sizeof *mail->items * (wanted->item_count + 1));
    for (size_t i = 0; i < wanted->item_count; i++) {
        item_uid_make(context->shard, context->dot.epoch, context->dot.counter,
                      context->uid_place + (uint32_t)i, items[i].uid);
        items[i].step = 1;
        items[i].minted_at_ms = context->owner_ms;
        items[i].kind = slice_from_text(wanted->items[i]->kind);
        items[i].attributes = slice_from_text(wanted->items[i]->attributes);
        mail->items[i] = goods_item_message(context->arena, &items[i]);
    }
}

err new_mail_put(struct apply_context *context, const struct new_mail *wanted,
                 struct new_mail_made *ret_made)
{
    Holdfast__V1__Mail mail = HOLDFAST__V1__MAIL__INIT;
    struct ledger_change changes[LEDGER_CHANGES_MAX];
    struct item_row items[LEDGER_ITEMS_MAX];

    err e = currencies_check(context, wanted);
    if (e == ERR_OK)
        e = goods_places_check(context, wanted->item_count + 1);
    if (e != ERR_OK)
        return e;
    items_make(context, wanted, items, &mail);
    mail.n_currencies = wanted->currency_count;
    mail.currencies = wanted->currencies;
    mail.text = wanted->text;
    mail.reason = wanted->reason;
    mail.sent_at_ms = (int64_t)context->owner_ms;
    mail.op_id = arena_text(context->arena, context->op->id.text);
    e = mailbox_put(context, context->op->entity, &mail, context->uid_place,
                    context->meta->policy.mailbox_max);
    if (e != ERR_OK)
        return e;
    balances_note(context, wanted, changes);
    struct ledger_entry entry = {
        .kind = HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_MAIL,
        .reason = slice_from_text(wanted->reason),
        .change_count = (uint32_t)wanted->currency_count,
        .changes = changes,
        .item_count = (uint32_t)wanted->item_count,
        .items = items,
    };
    *ret_made = (struct new_mail_made){
        .item_count = mail.n_items,
        .items = mail.items,
        .mail_id = mail.mail_id,
    };
    if (!goods_are_none(&mail)) {
        ledger_append(context, &entry);
        ret_made->ledger_seq = context->player->ledger_seq;
    }
    return ERR_OK;
}
