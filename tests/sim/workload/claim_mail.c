/* MailboxService.ClaimMail: what a piece of mail brings is the player's. */
#include <stdio.h>

#include "holdfast/v1/mailbox.pb-c.h"
#include "tests/sim/workload.h"

static bool fill(const struct sim *sim, struct sim_op *op, const struct workload_choice *choice)
{
    (void)sim;
    if (choice->mail != NULL)
        snprintf(op->mail, sizeof op->mail, "%s", choice->mail);
    return choice->mail != NULL;
}

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__ClaimMailRequest request = HOLDFAST__V1__CLAIM_MAIL_REQUEST__INIT;
    char *ids[] = { request_text(op->mail) };

    (void)sim;
    REQUEST_HEAD(request, op, parts);
    request.mail_ids = ids;
    request.n_mail_ids = 1;
    request_pack(&request.base, out);
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    const Holdfast__V1__ClaimMailRequest *request = (const void *)c->request;
    const Holdfast__V1__ClaimMailResponse *told = (const void *)response;
    uint32_t player = model_player_number(c);

    (void)op;
    for (size_t i = 0; i < request->n_mail_ids; i++) {
        struct mail_model *mail = goods_mail_find(&c->sim->oracle->book, request->mail_ids[i]);
        if (mail == NULL || mail->gone || mail->player != player) {
            model_fail(c, "claims mail that is not there", player);
            return;
        }
        mail->gone = true;
        c->player->now.mails--;
        goods_give(c, player, &mail->goods, c->op.id.text);
        c->sim->counts.mails_claimed++;
    }
    for (size_t i = 0; i < told->n_balances; i++) {
        uint32_t currency = model_currency(told->balances[i]->currency);
        if (told->balances[i]->amount != c->player->now.balances[currency])
            model_fail(c, "a claim tells another balance", (uint64_t)told->balances[i]->amount);
    }
}

const struct workload_row workload_claim_mail = {
    .method = METHOD_CLAIM_MAIL,
    .shares = { [WISH_GOODS] = { .place = 3, .weight = 3 } },
    .instead = METHOD_RETURN_EXPIRED_MAIL,
    .fill = fill,
    .encode = encode,
    .rule = { .effect = effect },
};
