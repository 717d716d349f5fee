/* MailboxService.ListMail: the mail that a player has. */
#include <string.h>

#include "holdfast/v1/mailbox.pb-c.h"
#include "runtime/base/check.h"
#include "tests/sim/oracle/list.h"
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__ListMailRequest request = HOLDFAST__V1__LIST_MAIL_REQUEST__INIT;

    (void)sim;
    request.player_id = parts->player;
    request.page_size = request_page(op, op->twist % 4, 100);
    request.cursor = request_text(op->cursor);
    request_pack(&request.base, out);
}

static bool same(const struct told *t, const struct mail_model *mail,
                 const Holdfast__V1__Mail *told)
{
    bool of_game = mail->from == mail->player;

    return strcmp(told->mail_id, mail->id) == 0 &&
           goods_are_mailed(&t->sim->oracle->book, &mail->goods, told) &&
           (uint64_t)told->expires_at_ms == mail->expires_ms &&
           (of_game ? told->from_player_id[0] == '\0'
                    : told->from_player_id[0] == 'p' &&
                          model_player_of_id(told->from_player_id) == mail->from);
}

/* In the book, plus one. */
static uint64_t place_of(const struct told *t, size_t at)
{
    const Holdfast__V1__ListMailResponse *response = (const void *)t->response;
    const struct goods_book *book = &t->sim->oracle->book;

    return (uint64_t)(goods_mail_find(book, response->mails[at]->mail_id) - book->mails) + 1;
}

static void told(const struct told *t)
{
    const Holdfast__V1__ListMailResponse *response = (const void *)t->response;
    const Holdfast__V1__ListMailRequest *request = (const void *)t->request;
    const struct mail_model *mails[LIST_MAILS];
    size_t size = request->page_size > 0 ? request->page_size : 50;
    uint64_t index = told_index(t), from = list_from(t, request->cursor);
    size_t at = 0;
    bool more = false;

    if (index == 0 || from == LIST_UNKNOWN)
        return;
    uint32_t count = list_mails(t, index, mails);
    if (response->total != count)
        told_fail(t, "the count of mail", response->total, count);
    for (uint32_t i = 0; i < count; i++) {
        if (from > 0 && strcmp(mails[i]->id, t->sim->oracle->book.mails[from - 1].id) <= 0)
            continue;
        more |= at == size;
        if (more)
            break;
        if (at == response->n_mails || !same(t, mails[i], response->mails[at])) {
            told_fail(t, "a piece of mail is told otherwise, or not at all", at, count);
            return;
        }
        at++;
    }
    if (response->n_mails != at)
        told_fail(t, "more mail than there is", response->n_mails, at);
    else
        list_goes_on(t, response->next_cursor, more, at > 0 ? place_of(t, at - 1) : from);
}

static void taken(struct sim *sim, const struct sim_op *op, struct slice body)
{
    Holdfast__V1__ListMailResponse *response =
        holdfast__v1__list_mail_response__unpack(NULL, body.size, body.data);

    CHECK(response != NULL);
    server_ask_on(sim, op, response->next_cursor);
    holdfast__v1__list_mail_response__free_unpacked(response, NULL);
}

const struct workload_row workload_list_mail = {
    .method = METHOD_LIST_MAIL,
    .shares = { [WISH_GOODS] = { .place = 5, .weight = 1 } },
    .encode = encode,
    .taken = taken,
    .rule = { .told = told },
};
