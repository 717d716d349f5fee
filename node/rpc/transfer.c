#include "node/rpc/transfer.h"

#include <string.h>

#include "idl/limit.h"
#include "node/core/channel/channel_out.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/goods.h"
#include "node/core/goods/mailbox.h"
#include "node/core/handler/refusal.h"
#include "node/core/rows/rows.h"
#include "node/rpc/item_uids.h"
#include "node/rpc/wallet.h"
#include "runtime/base/check.h"

#define EXPIRES_MS_MIN 1000ull
#define EXPIRES_MS_MAX LIMIT_MAIL_EXPIRY_MS

static err recipient_check(struct check_context *context, const struct transfer *transfer)
{
    struct slice to = slice_from_text(transfer->to_player_id);

    if (player_id_check(to) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "to_player_id",
                              "1 to 100 bytes of UTF-8 without control characters",
                              text_shorten(context->arena, to));
    if (strcmp(transfer->player_id, transfer->to_player_id) == 0)
        return refuse_invalid(context->arena, context->refusal, "to_player_id",
                              "another player than player_id", text_shorten(context->arena, to));
    return ERR_OK;
}

err transfer_text_check(struct check_context *context, const struct transfer *transfer)
{
    struct slice text = slice_from_text(transfer->text);

    if (text.size > MAIL_TEXT_BYTES_MAX || !text_is_clean(text))
        return refuse_invalid(context->arena, context->refusal, "text",
                              "at most 1024 bytes of UTF-8 without control characters",
                              text_shorten(context->arena, text));
    if (transfer->expires_in_ms != 0 &&
        (transfer->expires_in_ms < EXPIRES_MS_MIN || transfer->expires_in_ms > EXPIRES_MS_MAX))
        return refuse_unsigned(context->arena, context->refusal, "expires_in_ms",
                               "1000 to 31536000000, or 0", transfer->expires_in_ms);
    return wallet_reason_check(context, transfer->reason);
}

err transfer_check(struct check_context *context, const struct transfer *transfer)
{
    if (context->shard_count == 0)
        return refuse(context->arena, context->refusal, CODE(UNAVAILABLE), "",
                      "the node does not know the cluster yet; nothing was done");
    err e = recipient_check(context, transfer);
    if (e == ERR_OK)
        e = wallet_amounts_check(context, transfer->currency_count, transfer->currencies);
    if (e == ERR_OK)
        e = item_uids_check(context, transfer->uid_count, transfer->uids);
    if (e == ERR_OK)
        e = transfer_text_check(context, transfer);
    if (e == ERR_OK)
        e = refusal_defer(context,
                          channel_check_room(context->arena, context->refusal, context->meta));
    return e;
}

void transfer_footprint(const struct op *op, const struct transfer *transfer, struct need *keys)
{
    struct arena arena = { 0 };
    struct slice to = entity_of_player(&arena, transfer->to_player_id);
    struct row_key key;

    item_uids_footprint(op, transfer->uid_count, transfer->uids, keys);
    row_key_mailbox(&key, to);
    need_add_key(keys, row_key_slice(&key));
    if (op->shard_count > 0) {
        row_key_channel(&key, true,
                        channel_shard_of(&arena, transfer->to_player_id, op->shard_count));
        need_add_key(keys, row_key_slice(&key));
    }
    arena_deinit(&arena);
}

err transfer_take(struct apply_context *context, const struct transfer *transfer,
                  struct transfer_taken *ret_taken)
{
    ret_taken->ledger_seq = 0;
    ret_taken->items =
        arena_alloc(context->arena, sizeof *ret_taken->items * (transfer->uid_count + 1));
    err e = wallet_change(context, transfer->currency_count, transfer->currencies, -1,
                          ret_taken->changes);
    if (e == ERR_OK)
        e = goods_take_items(context, transfer->uid_count, transfer->uids, ret_taken->rows);
    if (e != ERR_OK)
        return e;
    for (size_t i = 0; i < transfer->uid_count; i++)
        ret_taken->items[i] = goods_item_message(context->arena, &ret_taken->rows[i]);
    if (transfer->currency_count + transfer->uid_count == 0)
        return ERR_OK;
    struct ledger_entry entry = {
        .kind = HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_TRANSFER,
        .reason = slice_from_text(transfer->reason),
        .change_count = (uint32_t)transfer->currency_count,
        .changes = ret_taken->changes,
        .item_count = (uint32_t)transfer->uid_count,
        .items = ret_taken->rows,
        .items_taken = transfer->uid_count > 0,
        .next = entity_of_player(context->arena, transfer->to_player_id),
        .counterpart_count = 1,
        .counterparts = &transfer->to_player_id,
    };
    ledger_append(context, &entry);
    ret_taken->ledger_seq = context->player->ledger_seq;
    return ERR_OK;
}

static void mail_fill(struct apply_context *context, const struct transfer *transfer,
                      const struct transfer_taken *taken, Holdfast__V1__Mail *mail)
{
    mail->from_player_id = text_lend(transfer->player_id);
    mail->n_currencies = transfer->currency_count;
    mail->currencies = (Holdfast__V1__CurrencyAmount **)(uintptr_t)transfer->currencies;
    mail->n_items = transfer->uid_count;
    mail->items = taken->items;
    mail->text = text_lend(transfer->text);
    mail->reason = text_lend(transfer->reason);
    mail->sent_at_ms = (int64_t)context->owner_ms;
    mail->op_id = arena_text(context->arena, context->op->id.text);
    if (transfer->expires_in_ms > 0)
        mail->expires_at_ms = (int64_t)(context->owner_ms + transfer->expires_in_ms);
}

err transfer_send(struct apply_context *context, const struct transfer *transfer,
                  const struct transfer_taken *taken, const ProtobufCMessage *response,
                  char **ret_mail_id)
{
    Holdfast__V1__Mail mail = HOLDFAST__V1__MAIL__INIT;
    uint32_t shard_count = context->op->shard_count;

    CHECK(shard_count > 0);
    mail_fill(context, transfer, taken, &mail);
    uint32_t destination = channel_shard_of(context->arena, transfer->to_player_id, shard_count);
    if (destination == context->shard) {
        struct slice to = entity_of_player(context->arena, transfer->to_player_id);
        err e = mailbox_put(context, to, &mail, 0, context->meta->policy.mailbox_max);
        if (e == ERR_OK)
            *ret_mail_id = mail.mail_id;
        return e;
    }
    err e = goods_note_sent(context, &mail);
    if (e != ERR_OK)
        return e;
    struct channel_send send = {
        .to_player_id = transfer->to_player_id,
        .mail = &mail,
        .response = arena_pack(context->arena, response),
    };
    return channel_open(context, destination, &send);
}
