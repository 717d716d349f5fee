/* MailboxService.DeliverMail, for one of its players: the game sends new goods. */
#include "holdfast/internal/v1/mailbox.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__Internal__V1__DeliverToPlayerRequest request =
        HOLDFAST__INTERNAL__V1__DELIVER_TO_PLAYER_REQUEST__INIT;

    (void)sim;
    REQUEST_HEAD_ANY(request, op, parts);
    request.text = request_text("hello");
    request.currencies = parts->amounts;
    request.n_currencies = op->amount % 3 != 1 ? parts->amount_count : 0;
    parts->item.kind = request_text("hat");
    request.items = parts->items;
    request.n_items = op->amount % 2 > 0 ? parts->item_count : 0;
    request_pack(&request.base, out);
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    const Holdfast__Internal__V1__DeliverToPlayerRequest *request = (const void *)c->request;
    const Holdfast__V1__MailDelivery *told = (const void *)response;
    struct goods_wish wish = { .from = model_player_number(c) };
    struct mail_model mail = { .player = wish.from, .from = wish.from }; /* Of the game. */

    (void)op;
    goods_wish_currencies(c, request->n_currencies, request->currencies, &wish);
    mail.goods = wish.goods;
    if (told->n_items != request->n_items)
        model_fail(c, "other items are told than are sent", told->n_items);
    for (size_t i = 0; i < told->n_items && i < SIM_GOODS_ITEMS; i++)
        mail.goods.items[mail.goods.item_count++] =
            goods_item_add(c, told->items[i]->uid, ITEM_MAILED, mail.player);
    for (uint32_t i = 0; i < mail.goods.item_count; i++)
        goods_item_made(c, mail.goods.items[i], request->items[i]);
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++)
        c->sim->oracle->book.made[i] += mail.goods.amounts[i];
    goods_mail_arrives(c, told->mail_id, &mail);
}

const struct workload_row workload_deliver_to_player = {
    .method = METHOD_DELIVER_TO_PLAYER,
    .shares = { [WISH_GOODS] = { .place = 6, .weight = 1 },
                [WISH_RECEIPT] = { .place = 2, .weight = 1 } },
    .system_per_thousand = 1000,
    .receipt_by_system = true,
    .encode = encode,
    .rule = { .system_admitted = true, .wants = WANTS_MAIL, .effect = effect },
};
