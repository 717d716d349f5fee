/* MailboxService.SendMail: a player sends goods it has. */
#include <stdio.h>

#include "holdfast/v1/mailbox.pb-c.h"
#include "tests/sim/servers/workload.h"

static bool fill(const struct sim *sim, struct sim_op *op, const struct workload_choice *choice)
{
    op->to = choice->to;
    if (choice->uid != NULL && op->amount % 3 > 0)
        snprintf(op->uid, sizeof op->uid, "%s", choice->uid);
    goods_pick_more(sim, op);
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
    request.n_currencies = op->amount % 3 != 1 ? parts->amount_count : 0;
    request.to_player_id = parts->to;
    request.item_uids = parts->uids;
    request.n_item_uids = parts->uid_count;
    if (op->amount % 4 < 2)
        request.expires_in_ms = op->twist % 16 < 2 ? 999 + op->twist % 2 : 1000 + op->amount % 3000;
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

const struct workload_row workload_send_mail = {
    .method = METHOD_SEND_MAIL,
    .shares = { [WISH_GOODS] = { .place = 2, .weight = 2 } },
    .fill = fill,
    .encode = encode,
    .rule = { .wants = WANTS_FUNDS_AND_MAIL, .effect = goods_sent, .sends = sends },
};
