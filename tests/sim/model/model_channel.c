/* The rules of DESIGN section 7, once more: one decision, at the destination; nothing is settled
 * without it; the watermark passes only what is settled. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "holdfast/internal/v1/channel.pb-c.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"
#include "tests/sim/model/model.h"

#define DECISION(name) HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_##name

static struct goods_book *book_of(const struct change *c)
{
    return &c->sim->oracle->book;
}

static struct player_model *player_at(const struct change *c, uint32_t number)
{
    CHECK(number < c->sim->player_count);
    return &c->sim->oracle->players[number];
}

bool goods_has_arrived(const struct sim *sim, uint32_t source, const struct op_model *op)
{
    const struct goods_book *book = &sim->oracle->book;

    for (uint32_t i = 0; i < book->transfer_count; i++) {
        const struct transfer_model *t = &book->transfers[i];
        if (t->source == source && t->op == (uint32_t)(op - sim->oracle->ops) + 1 && t->txn == 0 &&
            t->receipt == 0)
            return t->decision == APPLIED;
    }
    return false;
}

static enum decision decision_of(int decision)
{
    return decision == DECISION(APPLIED)    ? APPLIED
           : decision == DECISION(REJECTED) ? REJECTED
                                            : CANCELLED;
}

static void check_credit(const struct change *c, const struct transfer_model *t,
                         const Holdfast__Internal__V1__ChannelCredit *credit)
{
    const Holdfast__V1__Mail *mail = credit->mail;
    bool same = model_player_of_id(credit->to_player_id) == t->to &&
                model_player_of_id(mail->from_player_id) == t->from &&
                (uint64_t)mail->expires_at_ms == t->expires_ms &&
                goods_are_mailed(book_of(c), &t->goods, mail);

    if (!same)
        model_fail(c, "a credit is not what was debited", credit->seq);
}

static void decide(struct change *c, struct transfer_model *t, bool is_credit,
                   const Holdfast__Internal__V1__ChannelResult *result)
{
    CHECK(t->decision == UNDECIDED && t->destination == c->number);
    t->decision = decision_of((int)result->decision);
    if (t->decision == CANCELLED && (is_credit || !t->sealed))
        model_fail(c, "a transfer is cancelled that was never sealed", t->seq);
    if (t->decision == REJECTED && !goods_mailbox_is_full(c, t->to))
        model_fail(c, "a transfer is rejected without a reason", t->seq);
    c->sim->counts.transfers_cancelled += t->decision == CANCELLED;
    if (t->decision != APPLIED)
        return;
    if (!is_credit || goods_mailbox_is_full(c, t->to))
        model_fail(c, "a transfer is applied that may not be", t->seq);
    snprintf(t->mail, sizeof t->mail, "%s", result->mail_id);
    goods_mail_arrives(
        c, result->mail_id,
        &(struct mail_model){
            .player = t->to, .from = t->from, .expires_ms = t->expires_ms, .goods = t->goods });
}

static void txn_decide(struct change *c, struct transfer_model *t,
                       const Holdfast__Internal__V1__ChannelCredit *credit,
                       const Holdfast__Internal__V1__ChannelResult *result)
{
    CHECK(t->txn != 0 && t->receipt == 0);
    t->decision = decision_of((int)result->decision);
    txn_delivered(c, t, credit != NULL, credit, (int)result->decision);
}

static void receipt_decide(struct change *c, struct transfer_model *t,
                           const Holdfast__Internal__V1__ChannelCredit *credit,
                           const Holdfast__Internal__V1__ChannelResult *result)
{
    CHECK(t->receipt != 0 && t->txn == 0);
    t->decision = decision_of((int)result->decision);
    if (t->decision == CANCELLED && (credit != NULL || !t->sealed))
        model_fail(c, "a receipt is cancelled that was never sealed", t->seq);
    receipt_delivered(c, t, credit);
}

static void one_result(struct change *c, uint32_t source,
                       const Holdfast__Internal__V1__ChannelCredit *credit,
                       const Holdfast__Internal__V1__ChannelResult *result)
{
    struct transfer_model *t = goods_record_find(book_of(c), source, c->number, result->seq);

    if (t == NULL) {
        model_fail(c, "a credit without a committed debit", result->seq);
        return;
    }
    if (credit != NULL && t->txn == 0 && t->receipt == 0)
        check_credit(c, t, credit);
    if (result->decision == DECISION(SETTLED)) {
        c->sim->counts.credits_below_watermark++;
        if (!t->settled)
            model_fail(c, "a transfer that is open is ignored as settled", result->seq);
    } else if (result->decision == DECISION(UNSPECIFIED)) {
        model_fail(c, "a record means something else than before", result->seq);
    } else if (t->decision == UNDECIDED) {
        if (t->receipt != 0)
            receipt_decide(c, t, credit, result);
        else if (t->txn == 0)
            decide(c, t, credit != NULL, result);
        else
            txn_decide(c, t, credit, result);
    } else {
        c->sim->counts.credits_repeated++;
        if (t->decision != decision_of((int)result->decision) ||
            (t->decision == APPLIED && strcmp(t->mail, result->mail_id) != 0))
            model_fail(c, "a transfer is decided a second time", result->seq);
    }
}

static void watermark(struct change *c, uint32_t source, uint64_t asked, uint64_t logged)
{
    struct goods_book *book = book_of(c);
    uint64_t *stands = &book->watermark[source][c->number];

    for (uint64_t seq = *stands + 1; seq <= asked; seq++) {
        const struct transfer_model *t = goods_record_find(book, source, c->number, seq);
        if (t == NULL || !t->settled)
            model_fail(c, "the watermark passes an open transfer", seq);
    }
    if (logged < *stands || logged > (asked > *stands ? asked : *stands))
        model_fail(c, "the watermark is not what was asked for", logged);
    c->sim->counts.watermarks += logged > *stands;
    c->sim->counts.inbox_drops += logged - *stands;
    *stands = logged;
}

void goods_delivered(struct change *c)
{
    const Holdfast__Internal__V1__DeliverRequest *request = (const void *)c->request;
    const Holdfast__Internal__V1__DeliverResponse *response = (const void *)arena_unpack(
        &c->sim->oracle->arena, &holdfast__internal__v1__deliver_response__descriptor,
        c->outcome->body);
    size_t at = 0;

    CHECK(response != NULL);
    if (response->n_results != request->n_credits + request->n_cancels) {
        model_fail(c, "a batch has other results than records", response->n_results);
        return;
    }
    watermark(c, request->source, request->watermark, response->watermark);
    for (size_t i = 0; i < request->n_credits; i++)
        one_result(c, request->source, request->credits[i], response->results[at++]);
    for (size_t i = 0; i < request->n_cancels; i++)
        one_result(c, request->source, NULL, response->results[at++]);
}

/* It waits for reads: nothing is decided, and it will be sent again. */
static bool is_later(const Holdfast__Internal__V1__DeliverResponse *response,
                     const Holdfast__Internal__V1__ChannelResult *result)
{
    for (size_t i = 0; i < response->n_later; i++) {
        if (response->later[i] == result->seq)
            return result->decision ==
                   HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_UNSPECIFIED;
    }
    return false;
}

void goods_check_told(struct sim *sim, uint32_t destination, const ProtobufCMessage *asked,
                      const ProtobufCMessage *told)
{
    const Holdfast__Internal__V1__DeliverRequest *request = (const void *)asked;
    const Holdfast__Internal__V1__DeliverResponse *response = (const void *)told;

    for (size_t i = 0; i < response->n_results; i++) {
        const Holdfast__Internal__V1__ChannelResult *result = response->results[i];
        const struct transfer_model *t =
            goods_record_find(&sim->oracle->book, request->source, destination, result->seq);
        if (is_later(response, result))
            continue;
        if (t == NULL || t->decision == UNDECIDED)
            sim_fail(sim, destination,
                     "a decision on transfer %" PRIu64 " of shard %u is told "
                     "that is not in the log",
                     result->seq, request->source);
    }
}

static void refund(struct change *c, const struct transfer_model *t)
{
    struct player_model *from = player_at(c, t->from);

    CHECK(t->source == c->number && t->decision != APPLIED);
    c->sim->counts.transfers_refunded++;
    if (!goods_are_nothing(&t->goods))
        from->now.version++;
    goods_give(c, t->from, &t->goods,
               slice_from_text(strchr(c->sim->oracle->ops[t->op - 1].key, ' ') + 1));
    model_remember(from, c->entry->index);
}

static void come_back(struct change *c, const struct transfer_model *t, uint32_t place)
{
    uint8_t id[ITEM_UID_BYTES];
    char text[ITEM_UID_TEXT_SIZE];

    CHECK(t->op == 0 && t->decision != APPLIED);
    item_uid_make(c->number, c->entry->dot.epoch, c->entry->dot.counter, place, id);
    item_uid_print(id, text);
    goods_mail_arrives(c, text,
                       &(struct mail_model){ .player = t->from,
                                             .from = t->to,
                                             .expires_ms = c->entry->owner_ms,
                                             .goods = t->goods });
}

static void op_settled(struct change *c, const struct transfer_model *t)
{
    struct op_model *op = &c->sim->oracle->ops[t->op - 1];

    CHECK(t->settled && t->decision != UNDECIDED);
    if (op->state != OP_PENDING)
        model_fail_op(c, op, "is settled, and was not pending");
    c->sim->oracle->pending--;
    op->settled_index = c->entry->index;
    if (t->decision == APPLIED) {
        op->state = OP_COMMITTED;
        return;
    }
    op->state = t->decision == REJECTED ? OP_REFUSED : OP_ABORTED;
    op->refused_index = c->entry->index;
    if (t->decision == CANCELLED)
        op->index = c->entry->index;
    if (t->sealed)
        op->attempt = UINT32_MAX;
}

static void settled_with(struct change *c, const Holdfast__Internal__V1__SettleRequest *request,
                         uint32_t first)
{
    for (size_t i = 0; i < request->n_items; i++) {
        const Holdfast__Internal__V1__ChannelResult *result = request->items[i]->result;
        struct transfer_model *t =
            goods_record_find(book_of(c), c->number, request->destination, result->seq);
        if (result->decision == DECISION(UNSPECIFIED) || result->decision == DECISION(SETTLED) ||
            (t != NULL && t->settled))
            continue;
        if (t == NULL || t->decision == UNDECIDED ||
            t->decision != decision_of((int)result->decision)) {
            model_fail(c, "a transfer is settled by what was never decided", result->seq);
            return;
        }
        t->settled = true;
        book_of(c)->open--;
        if (t->txn != 0) {
            txn_settled(c, t);
            continue;
        }
        if (t->receipt != 0) {
            receipt_settled(c, t);
            continue;
        }
        c->sim->counts.transfers_settled++;
        c->sim->counts.transfers_across_owners += t->epoch != c->entry->dot.epoch;
        if (t->op != 0)
            op_settled(c, t);
        if (t->decision != APPLIED && t->op != 0)
            refund(c, t);
        else if (t->decision != APPLIED)
            come_back(c, t, first + (uint32_t)i);
    }
}

void goods_settled(struct change *c)
{
    const Holdfast__Internal__V1__SettleRequest *request = (const void *)c->request;
    uint32_t first = (uint32_t)request->n_items;

    settled_with(c, request, 0);
    for (size_t i = 0; i < request->n_more; i++) {
        settled_with(c, request->more[i], first);
        first += (uint32_t)request->more[i]->n_items;
    }
    c->sim->counts.settles_of_several += request->n_more > 0;
}
