/* MailboxService.ClaimMail: what a piece of mail brings is the player's. */
#include <stdio.h>
#include <string.h>

#include "holdfast/v1/mailbox.pb-c.h"
#include "idl/error_code.h"
#include "tests/sim/servers/workload.h"

static bool fill(const struct sim *sim, struct sim_op *op, const struct workload_choice *choice)
{
    const struct goods_book *book = &sim->oracle->book;

    if (choice->mail == NULL)
        return false;
    snprintf(op->mail, sizeof op->mail, "%s", choice->mail);
    for (uint32_t i = 0; i < book->mail_count && op->twist % 2 == 0; i++) {
        const struct mail_model *mail = &book->mails[i];
        if (!mail->gone && mail->player == op->player && strcmp(mail->id, op->mail) != 0)
            memcpy(op->more_mail, mail->id, sizeof mail->id); /* The newest. */
    }
    return true;
}

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__ClaimMailRequest request = HOLDFAST__V1__CLAIM_MAIL_REQUEST__INIT;
    char *ids[] = { request_text(op->mail), request_text(op->more_mail) };

    (void)sim;
    REQUEST_HEAD(request, op, parts);
    request.mail_ids = ids;
    request.n_mail_ids = op->more_mail[0] != '\0' ? 2 : 1;
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
        mail->gone_index = c->entry->index;
        c->player->now.mails--;
        if (!policy_has_room(c, &c->player->now, &mail->goods))
            model_fail(c, "claims more than the player may have", player);
        goods_give(c, player, &mail->goods, c->op.id.text);
        c->sim->counts.mails_claimed++;
    }
    for (size_t i = 0; i < told->n_balances; i++) {
        uint32_t currency = model_currency(told->balances[i]->currency);
        if (told->balances[i]->amount != c->player->now.balances[currency])
            model_fail(c, "a claim tells another balance", (uint64_t)told->balances[i]->amount);
    }
}

/* As if each were claimed after the other. */
static void refused_now(const struct change *c, const struct op_model *op, int code)
{
    const Holdfast__V1__ClaimMailRequest *request = (const void *)c->request;
    struct moment after = c->player->now;
    bool full = false, missing = false;

    for (size_t i = 0; i < request->n_mail_ids; i++) {
        const struct mail_model *mail =
            goods_mail_find(&c->sim->oracle->book, request->mail_ids[i]);
        if (mail == NULL || mail->gone || mail->player != model_player_number(c)) {
            missing = true;
            break;
        }
        full |= !policy_has_room(c, &after, &mail->goods);
        after.items += mail->goods.item_count;
        for (uint32_t j = 0; j < SIM_CURRENCIES; j++)
            after.balances[j] += mail->goods.amounts[j];
    }
    if (code == (int)CODE(CAPACITY_FULL) && (missing || !full))
        model_fail_op(c, op, "is refused for a limit that is not reached");
    if (code == (int)CODE(NOT_FOUND) && !missing)
        model_fail_op(c, op, "does not find mail that is there");
}

const struct workload_row workload_claim_mail = {
    .method = METHOD_CLAIM_MAIL,
    .shares = { [WISH_GOODS] = { .place = 3, .weight = 3 } },
    .instead = METHOD_RETURN_EXPIRED_MAIL,
    .fill = fill,
    .encode = encode,
    .rule = { .effect = effect, .refused_now = refused_now },
};
