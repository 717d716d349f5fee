/* MailboxService.SendMail: a player sends goods it has, or the game sends new ones. */
#include <stdio.h>

#include "holdfast/v1/mailbox.pb-c.h"
#include "tests/sim/workload.h"

static bool fill(const struct sim *sim, struct sim_op *op, const struct workload_choice *choice)
{
    (void)sim;
    op->to = choice->to;
    if (choice->uid != NULL && op->amount % 3 > 0)
        snprintf(op->uid, sizeof op->uid, "%s", choice->uid);
    return true;
}

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__SendMailRequest request = HOLDFAST__V1__SEND_MAIL_REQUEST__INIT;

    (void)sim;
    REQUEST_HEAD(request, op, parts);
    request.text = request_text("hello");
    request.currencies = parts->amounts;
    request.n_currencies = op->amount % 3 != 1;
    if (op->authority == BY_SYSTEM) {
        parts->item.kind = request_text("hat");
        request.mint = parts->items;
        request.n_mint = op->amount % 2;
    } else {
        request.to_player_id = parts->to;
        request.item_uids = parts->uids;
        request.n_item_uids = op->uid[0] != '\0';
        if (op->amount % 4 < 2)
            request.expires_in_ms = 1000 + op->amount % 3000;
    }
    request_pack(&request.base, out);
}

static void sends(const struct change *c, struct goods_wish *ret_wish)
{
    const Holdfast__V1__SendMailRequest *request = (const void *)c->request;

    ret_wish->to = model_player_of_id(request->to_player_id);
    goods_wish_currencies(c, request->n_currencies, request->currencies, ret_wish);
    goods_wish_items(c, request->n_item_uids, request->item_uids, ret_wish);
    if (request->expires_in_ms > 0)
        ret_wish->expires_ms = c->entry->owner_ms + request->expires_in_ms;
}

static void sent_by_game(struct change *c, const Holdfast__V1__SendMailResponse *told)
{
    const Holdfast__V1__SendMailRequest *request = (const void *)c->request;
    struct goods_wish wish = { .from = model_player_number(c) };
    struct mail_model mail = { .player = wish.from };

    goods_wish_currencies(c, request->n_currencies, request->currencies, &wish);
    mail.goods = wish.goods;
    if (told->n_items > 0)
        mail.goods.item = goods_item_add(c, told->items[0]->uid, ITEM_MAILED, mail.player);
    c->sim->oracle->book.made[mail.goods.currency] += mail.goods.amount;
    goods_mail_arrives(c, told->mail_id, &mail);
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    if (c->op.authority.kind == AUTHORITY_SYSTEM)
        sent_by_game(c, (const void *)response);
    else
        goods_sent(c, op, response);
}

const struct workload_row workload_send_mail = {
    .method = METHOD_SEND_MAIL,
    .shares = { [WISH_GOODS] = { .place = 2, .weight = 2 },
                [WISH_RECEIPT] = { .place = 2, .weight = 1 } },
    .system_per_thousand = 200,
    .receipt_by_system = true,
    .fill = fill,
    .encode = encode,
    .rule = { .system_admitted = true, .effect = effect, .sends = sends },
};
