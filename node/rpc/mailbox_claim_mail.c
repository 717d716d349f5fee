#include <string.h>

#include "holdfast/v1/mailbox.pb-c.h"
#include "idl/limit.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/goods.h"
#include "node/core/goods/mailbox.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"
#include "node/rpc/wallet.h"
#include "runtime/base/check.h"

#define MAILS_MAX LIMIT_MAILS_CLAIMED

typedef Holdfast__V1__ClaimMailRequest claim_request;
typedef Holdfast__V1__ClaimMailResponse claim_response;

static err mailbox_claim_mail_check(struct check_context *context, ProtobufCMessage *message)
{
    const claim_request *request = (const claim_request *)message;
    struct arena *arena = context->arena;
    uint8_t id[ITEM_UID_BYTES];

    if (request->n_mail_ids == 0 || request->n_mail_ids > MAILS_MAX)
        return refuse_number(arena, context->refusal, "mail_ids", "1 to 16",
                             (int64_t)request->n_mail_ids);
    for (size_t i = 0; i < request->n_mail_ids; i++) {
        struct slice text = slice_from_text(request->mail_ids[i]);
        const char *field = arena_printf(arena, "mail_ids[%zu]", i);
        if (item_uid_parse(text, id) != ERR_OK)
            return refuse_invalid(arena, context->refusal, field, "32 hex digits, lower case",
                                  text_shorten(arena, text));
        for (size_t j = 0; j < i; j++) {
            if (strcmp(request->mail_ids[j], request->mail_ids[i]) == 0)
                return refuse_invalid(arena, context->refusal, field, "each piece of mail once",
                                      request->mail_ids[i]);
        }
    }
    return ERR_OK;
}

static void mailbox_claim_footprint(const struct op *op, const ProtobufCMessage *message,
                                    struct need *keys)
{
    const claim_request *request = (const claim_request *)message;
    uint8_t id[ITEM_UID_BYTES];
    struct row_key key;

    row_key_mailbox(&key, op->entity);
    need_add_key(keys, row_key_slice(&key));
    for (size_t i = 0; i < request->n_mail_ids; i++) {
        CHECK(item_uid_parse(slice_from_text(request->mail_ids[i]), id) == ERR_OK);
        row_key_mail(&key, op->entity, id);
        need_add_key(keys, row_key_slice(&key));
    }
}

/* One piece of mail's goods, into wallet and inventory. */
static err grant(struct apply_context *context, const Holdfast__V1__Mail *mail,
                 struct balance_list *list, claim_response *response)
{
    struct ledger_change changes[LEDGER_CHANGES_MAX];
    struct item_row items[LEDGER_ITEMS_MAX];

    if (goods_are_none(mail))
        return ERR_OK;
    err e = wallet_change(context, mail->n_currencies, mail->currencies, 1, changes);
    if (e == ERR_OK)
        e = goods_put_items(context, mail->n_items, mail->items, context->meta->policy.items_max,
                            items);
    if (e != ERR_OK)
        return e;
    struct ledger_entry entry = {
        .kind = HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_CLAIM,
        .reason = slice_from_text(mail->reason),
        .change_count = (uint32_t)mail->n_currencies,
        .changes = changes,
        .item_count = (uint32_t)mail->n_items,
        .items = items,
        .counterpart_count = mail->from_player_id[0] != 0 ? 1 : 0,
        .counterparts = (const char *const *)&mail->from_player_id,
        .mail_op_id = mail->op_id,
    };
    ledger_append(context, &entry);
    response->ledger_seq = context->player->ledger_seq;
    balance_list_note(list, mail->n_currencies, changes);
    for (size_t i = 0; i < mail->n_items; i++)
        response->items[response->n_items++] = mail->items[i];
    return ERR_OK;
}

static err mailbox_claim_handle(struct apply_context *context, const ProtobufCMessage *message,
                                ProtobufCMessage *reply)
{
    const claim_request *request = (const claim_request *)message;
    claim_response *response = (claim_response *)reply;
    Holdfast__V1__Mail *mails[MAILS_MAX];
    struct balance_list list;
    err e = ERR_OK;

    CHECK(request->n_mail_ids <= MAILS_MAX);
    for (size_t i = 0; i < request->n_mail_ids; i++) {
        err taken = mailbox_take(context, context->op->entity, request->mail_ids[i], &mails[i]);
        if (taken == ERR_NEED || e == ERR_OK)
            e = taken; /* Go on, so that every missing row is noted. */
    }
    balance_list_init(&list, context->arena, MAILS_MAX * LEDGER_CHANGES_MAX, context->version);
    response->items =
        arena_alloc(context->arena, sizeof *response->items * MAILS_MAX * LEDGER_ITEMS_MAX);
    for (size_t i = 0; i < request->n_mail_ids && e == ERR_OK; i++) {
        e = grant(context, mails[i], &list, response);
        if (e == ERR_CONFLICT || e == ERR_INVALID) /* Of the mail, which the request names. */
            refusal_tell_field(context, arena_printf(context->arena, "mail_ids[%zu]", i));
    }
    BALANCE_LIST_TELL(&list, response);
    return e;
}

const struct handler mailbox_claim_mail_handler = {
    .method = METHOD_CLAIM_MAIL,
    .admits = ADMITS_SESSION | ADMITS_UNHELD,
    .check = mailbox_claim_mail_check,
    .footprint = mailbox_claim_footprint,
    .handle = mailbox_claim_handle,
};
