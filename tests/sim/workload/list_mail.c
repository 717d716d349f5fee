/* MailboxService.ListMail: the mail that a player has. */
#include "holdfast/v1/mailbox.pb-c.h"
#include "tests/sim/answer.h"
#include "tests/sim/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__ListMailRequest request = HOLDFAST__V1__LIST_MAIL_REQUEST__INIT;

    (void)sim;
    (void)op;
    request.player_id = parts->player;
    request_pack(&request.base, out);
}

static void told(const struct told *t)
{
    const Holdfast__V1__ListMailResponse *response = (const void *)t->response;
    uint64_t index = told_index(t);
    uint32_t mails = told_moment(t, index)->mails;

    if (index > 0 && (response->total != mails || response->n_mails != mails))
        told_fail(t, "the count of mail", response->total, mails);
}

const struct workload_row workload_list_mail = {
    .method = METHOD_LIST_MAIL,
    .shares = { [WISH_GOODS] = { .place = 5, .weight = 1 } },
    .encode = encode,
    .rule = { .told = told },
};
