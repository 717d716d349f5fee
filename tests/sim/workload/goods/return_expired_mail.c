/* MailboxService.ReturnExpiredMail: mail whose time is over goes back to its sender. */
#include <stdlib.h>
#include <string.h>

#include "holdfast/v1/mailbox.pb-c.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"
#include "tests/sim/servers/workload.h"

#define MAILS_MAX 64u /* In one mailbox. */

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__ReturnExpiredMailRequest request =
        HOLDFAST__V1__RETURN_EXPIRED_MAIL_REQUEST__INIT;

    (void)sim;
    REQUEST_HEAD(request, op, parts);
    request_pack(&request.base, out);
}

static int by_id(const void *a, const void *b)
{
    const struct mail_model *left = a;
    const struct mail_model *right = b;

    return strcmp(left->id, right->id);
}

/* A copy of the mailbox, oldest first. */
static uint32_t mailbox_copy(const struct change *c, struct mail_model ret_mails[MAILS_MAX])
{
    const struct goods_book *book = &c->sim->oracle->book;
    uint32_t player = model_player_number(c);
    uint32_t count = 0;

    for (uint32_t i = 0; i < book->mail_count; i++) {
        if (book->mails[i].player != player || book->mails[i].gone)
            continue;
        CHECK(count < MAILS_MAX);
        ret_mails[count++] = book->mails[i];
    }
    qsort(ret_mails, count, sizeof *ret_mails, by_id);
    return count;
}

static void send_back(const struct change *c, const struct mail_model *mail, uint32_t place)
{
    uint8_t id[ITEM_UID_BYTES];
    char text[ITEM_UID_TEXT_SIZE];

    struct mail_model *kept = goods_mail_find(&c->sim->oracle->book, mail->id);

    kept->gone = true;
    kept->gone_index = c->entry->index;
    c->player->now.mails--;
    c->sim->counts.mails_returned++;
    if (goods_are_nothing(&mail->goods))
        return;
    if (c->sim->player_shard[mail->from] == c->number) {
        item_uid_make(c->number, c->entry->dot.epoch, c->entry->dot.counter, place, id);
        item_uid_print(id, text);
        goods_mail_arrives(c, text,
                           &(struct mail_model){
                               .player = mail->from, .from = mail->player, .goods = mail->goods });
        return;
    }
    goods_transfer_open(c, &(struct transfer_model){
                               .from = mail->player, .to = mail->from, .goods = mail->goods });
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    const Holdfast__V1__ReturnExpiredMailResponse *told = (const void *)response;
    struct mail_model mails[MAILS_MAX];
    uint32_t count = mailbox_copy(c, mails);
    uint32_t left = 0;

    (void)op;
    for (uint32_t i = 0; i < count; i++) {
        const struct mail_model *mail = &mails[i];
        bool stays = mail->expires_ms == 0 || mail->expires_ms > c->entry->owner_ms;
        bool goods = !goods_are_nothing(&mail->goods);
        stays |= goods && c->sim->player_shard[mail->from] == c->number &&
                 goods_mailbox_is_full(c, mail->from);
        if (stays)
            continue;
        left++;
        send_back(c, mail, i);
    }
    if (left != told->returned)
        model_fail(c, "other mail goes back than has expired", told->returned);
}

const struct workload_row workload_return_expired_mail = {
    .method = METHOD_RETURN_EXPIRED_MAIL,
    .shares = { [WISH_GOODS] = { .place = 4, .weight = 1 } },
    .system_per_thousand = WORKLOAD_ALWAYS,
    .encode = encode,
    .rule = { .system_admitted = true, .effect = effect },
};
