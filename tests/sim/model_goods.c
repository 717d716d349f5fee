/* The rules of DESIGN section 7, once more: one decision, at the destination; nothing is settled
 * without it; the watermark passes only what is settled. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/channel.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "idl/method.h"
#include "node/core/arena_proto.h"
#include "node/core/rows.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"
#include "tests/sim/model.h"

#define DECISION(name) HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_##name

static void fail(const struct change *c, const char *what, uint64_t number)
{
    sim_fail(c->sim, c->number, "entry %" PRIu64 ": %s (%" PRIu64 ")", c->entry->index, what,
             number);
}

static struct goods_book *book_of(const struct change *c)
{
    return &c->sim->oracle->book;
}

static struct player_model *player_at(const struct change *c, uint32_t number)
{
    return &c->sim->oracle->players[number];
}

static uint32_t number_of(const char *player_id)
{
    CHECK(player_id[0] == 'p');
    return (uint32_t)(player_id[1] - '0');
}

void goods_deinit(struct goods_book *book)
{
    free(book->items);
    free(book->mails);
    free(book->transfers);
    free(book->steps);
    free(book->txns);
    free(book->receipts);
}

#define GROW(list, count, capacity)                                                                \
    do {                                                                                           \
        if ((count) == (capacity)) {                                                               \
            (capacity) = (capacity)*2 + 64;                                                        \
            (list) = mem_realloc((list), sizeof *(list) * (capacity));                             \
        }                                                                                          \
    } while (false)

/* ---- items ---- */
uint32_t goods_item_find(const struct goods_book *book, const char *uid)
{
    for (uint32_t i = 0; i < book->item_count; i++) {
        if (strcmp(book->items[i].uid, uid) == 0)
            return i + 1;
    }
    return 0;
}

uint32_t goods_item_new(const struct change *c, const char *uid, enum item_place place,
                        uint32_t player)
{
    struct goods_book *book = book_of(c);

    if (goods_item_find(book, uid) != 0)
        fail(c, "an item's UID is given out twice", 0);
    GROW(book->items, book->item_count, book->item_capacity);
    struct item_model *item = &book->items[book->item_count++];
    *item = (struct item_model){ .place = place, .player = player };
    snprintf(item->uid, sizeof item->uid, "%s", uid);
    return book->item_count;
}

static uint32_t item_add(const struct change *c, const char *uid, enum item_place place,
                         uint32_t player)
{
    uint32_t item = goods_item_new(c, uid, place, player);

    trace_step(c, item, player, place == ITEM_HELD, c->op.id.text);
    return item;
}

void goods_item_move(const struct change *c, uint32_t item, enum item_place place, uint32_t player)
{
    if (item == 0)
        return;
    book_of(c)->items[item - 1].place = place;
    book_of(c)->items[item - 1].player = player;
}

/* ---- goods leave a player, and come to one ---- */
static void take(const struct change *c, uint32_t number, const struct goods *goods)
{
    struct player_model *player = player_at(c, number);

    if (goods->amount > 0) {
        player->now.balances[goods->currency] -= goods->amount;
        if (player->now.balances[goods->currency] < 0)
            fail(c, "sends what is not there", number);
    }
    if (goods->item == 0)
        return;
    const struct item_model *item = &book_of(c)->items[goods->item - 1];
    if (item->place != ITEM_HELD || item->player != number)
        fail(c, "sends an item that the player does not hold", number);
    player->now.items--;
    trace_step(c, goods->item, number, false, c->op.id.text);
}

static void give(const struct change *c, uint32_t number, const struct goods *goods,
                 struct slice op_id)
{
    struct player_model *player = player_at(c, number);

    if (goods->amount > 0)
        player->now.balances[goods->currency] += goods->amount;
    if (goods->item == 0)
        return;
    goods_item_move(c, goods->item, ITEM_HELD, number);
    trace_step(c, goods->item, number, true, op_id);
    player->now.items++;
}

/* ---- mail ---- */
static struct mail_model *mail_find(const struct goods_book *book, const char *id)
{
    for (uint32_t i = 0; i < book->mail_count; i++) {
        if (strcmp(book->mails[i].id, id) == 0)
            return &book->mails[i];
    }
    return NULL;
}

static void mail_arrives(const struct change *c, const char *id, const struct mail_model *mail)
{
    struct goods_book *book = book_of(c);
    struct player_model *player = player_at(c, mail->player);

    if (strlen(id) != GOODS_ID_SIZE - 1 || mail_find(book, id) != NULL)
        fail(c, "mail under an id that is none, or was given out before", 0);
    GROW(book->mails, book->mail_count, book->mail_capacity);
    struct mail_model *added = &book->mails[book->mail_count++];
    *added = *mail;
    snprintf(added->id, sizeof added->id, "%s", id);
    goods_item_move(c, mail->goods.item, ITEM_MAILED, mail->player);
    player->now.mails++;
    if (player != c->player)
        model_remember(player, c->entry->index);
}

static bool mailbox_is_full(const struct change *c, uint32_t number)
{
    return player_at(c, number)->now.mails >= SIM_MAILBOX_MAX;
}

/* ---- transfers ---- */
static struct transfer_model *transfer_find(const struct goods_book *book, uint32_t source,
                                            uint32_t destination, uint64_t seq)
{
    for (uint32_t i = book->transfer_count; i > 0; i--) {
        struct transfer_model *t = &book->transfers[i - 1];
        if (t->source == source && t->destination == destination && t->seq == seq)
            return t;
    }
    return NULL;
}

struct transfer_model *goods_record_open(const struct change *c,
                                         const struct transfer_model *transfer)
{
    struct goods_book *book = book_of(c);

    GROW(book->transfers, book->transfer_count, book->transfer_capacity);
    struct transfer_model *t = &book->transfers[book->transfer_count++];
    *t = *transfer;
    t->source = c->number;
    t->destination = t->receipt != 0 ? shard_of_entity(c->op.id.text, c->sim->shard_count)
                                     : c->sim->player_shard[t->to];
    t->epoch = c->entry->dot.epoch;
    t->seq = ++book->last_seq[t->source][t->destination];
    book->open++;
    return t;
}

static void transfer_open(const struct change *c, const struct transfer_model *transfer)
{
    const struct transfer_model *t = goods_record_open(c, transfer);

    goods_item_move(c, t->goods.item, ITEM_ON_ITS_WAY, t->to);
    c->sim->counts.transfers_opened++;
}

/* What a request sends. */
struct wish {
    uint32_t from, to;
    struct goods goods;
    uint64_t expires_ms;
};

static void wish_goods(const struct change *c, size_t amounts,
                       Holdfast__V1__CurrencyAmount *const *currencies, size_t uids,
                       char *const *item_uids, struct wish *wish)
{
    if (amounts > 0) {
        wish->goods.amount = currencies[0]->amount;
        wish->goods.currency = strcmp(currencies[0]->currency, "gems") == 0;
    }
    if (uids > 0)
        wish->goods.item = goods_item_find(book_of(c), item_uids[0]);
    if (uids > 0 && wish->goods.item == 0)
        fail(c, "sends an item that never was", 0);
}

static struct wish wish_of(const struct change *c)
{
    struct wish wish = { .from = (uint32_t)(c->player - c->sim->oracle->players) };

    if (c->op.method == METHOD_LEDGER_TRANSFER) {
        const Holdfast__V1__LedgerServiceTransferRequest *r = (const void *)c->request;
        wish.to = number_of(r->to_player_id);
        wish_goods(c, r->n_currencies, r->currencies, 0, NULL, &wish);
    } else if (c->op.method == METHOD_INVENTORY_TRANSFER) {
        const Holdfast__V1__InventoryServiceTransferRequest *r = (const void *)c->request;
        wish.to = number_of(r->to_player_id);
        wish_goods(c, 0, NULL, r->n_item_uids, r->item_uids, &wish);
    } else if (c->op.method == METHOD_POST) {
        const Holdfast__V1__PostRequest *r = (const void *)c->request;
        wish.to = number_of(r->to_player_id);
    } else {
        const Holdfast__V1__MailboxServiceSendRequest *r = (const void *)c->request;
        wish.to = number_of(r->to_player_id);
        wish_goods(c, r->n_currencies, r->currencies, r->n_item_uids, r->item_uids, &wish);
        if (r->expires_in_ms > 0)
            wish.expires_ms = c->entry->owner_ms + r->expires_in_ms;
    }
    return wish;
}

/* They leave the player, or the player's reservation. */
static void leave(const struct change *c, struct wish *wish)
{
    if (c->op.method == METHOD_POST)
        wish->goods = model_post(c, model_op(c->sim->oracle, c->op.entity, c->op.id.text));
    else
        take(c, wish->from, &wish->goods);
}

static const char *mail_id_of(const ProtobufCMessage *response)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(response->descriptor, "mail_id");

    CHECK(field != NULL);
    return *(char *const *)(const void *)((const uint8_t *)response + field->offset);
}

/* ---- mutations ---- */
static void sent(const struct change *c, const ProtobufCMessage *response)
{
    struct wish wish = wish_of(c);

    if (c->sim->player_shard[wish.to] != c->number)
        fail(c, "is reported as done before anybody could decide on it", wish.to);
    if (mailbox_is_full(c, wish.to))
        fail(c, "arrives in a full mailbox", wish.to);
    leave(c, &wish);
    mail_arrives(c, mail_id_of(response),
                 &(struct mail_model){ .player = wish.to,
                                       .from = wish.from,
                                       .expires_ms = wish.expires_ms,
                                       .goods = wish.goods });
    c->sim->counts.transfers_local++;
}

static void sent_by_game(const struct change *c, const Holdfast__V1__MailboxServiceSendResponse *r)
{
    const Holdfast__V1__MailboxServiceSendRequest *request = (const void *)c->request;
    uint32_t number = (uint32_t)(c->player - c->sim->oracle->players);
    struct mail_model mail = { .player = number };
    struct wish wish = { .from = number };

    wish_goods(c, request->n_currencies, request->currencies, 0, NULL, &wish);
    mail.goods = wish.goods;
    if (r->n_items > 0)
        mail.goods.item = item_add(c, r->items[0]->uid, ITEM_MAILED, number);
    book_of(c)->made[mail.goods.currency] += mail.goods.amount;
    mail_arrives(c, r->mail_id, &mail);
}

static void claimed(const struct change *c, const Holdfast__V1__MailboxServiceClaimResponse *r)
{
    const Holdfast__V1__MailboxServiceClaimRequest *request = (const void *)c->request;
    uint32_t number = (uint32_t)(c->player - c->sim->oracle->players);

    for (size_t i = 0; i < request->n_mail_ids; i++) {
        struct mail_model *mail = mail_find(book_of(c), request->mail_ids[i]);
        if (mail == NULL || mail->gone || mail->player != number) {
            fail(c, "claims mail that is not there", number);
            return;
        }
        mail->gone = true;
        c->player->now.mails--;
        give(c, number, &mail->goods, c->op.id.text);
        c->sim->counts.mails_claimed++;
    }
    for (size_t i = 0; i < r->n_balances; i++) {
        uint32_t currency = strcmp(r->balances[i]->currency, "gems") == 0;
        if (r->balances[i]->amount != c->player->now.balances[currency])
            fail(c, "a claim tells another balance", (uint64_t)r->balances[i]->amount);
    }
}

static int by_id(const void *a, const void *b)
{
    const struct mail_model *left = a;
    const struct mail_model *right = b;

    return strcmp(left->id, right->id);
}

/* A copy of the mailbox, oldest first. */
static uint32_t mailbox_copy(const struct change *c, uint32_t number, struct mail_model *ret_mails)
{
    const struct goods_book *book = book_of(c);
    uint32_t count = 0;

    for (uint32_t i = 0; i < book->mail_count; i++) {
        if (book->mails[i].player == number && !book->mails[i].gone)
            ret_mails[count++] = book->mails[i];
    }
    qsort(ret_mails, count, sizeof *ret_mails, by_id);
    return count;
}

static void send_back(const struct change *c, const struct mail_model *mail, uint32_t place)
{
    uint8_t id[ITEM_UID_BYTES];
    char text[ITEM_UID_TEXT_SIZE];

    mail_find(book_of(c), mail->id)->gone = true;
    c->player->now.mails--;
    c->sim->counts.mails_returned++;
    if (mail->goods.amount == 0 && mail->goods.item == 0)
        return;
    if (c->sim->player_shard[mail->from] == c->number) {
        item_uid_make(c->number, c->entry->dot.epoch, c->entry->dot.counter, place, id);
        item_uid_print(id, text);
        mail_arrives(c, text,
                     &(struct mail_model){
                         .player = mail->from, .from = mail->player, .goods = mail->goods });
        return;
    }
    transfer_open(c, &(struct transfer_model){
                         .from = mail->player, .to = mail->from, .goods = mail->goods });
}

static void returned(const struct change *c, const Holdfast__V1__ReturnExpiredResponse *r)
{
    struct mail_model mails[SIM_MAILBOX_MAX * 64];
    uint32_t number = (uint32_t)(c->player - c->sim->oracle->players);
    uint32_t count = mailbox_copy(c, number, mails);
    uint32_t left = 0;

    CHECK(count <= 64);
    for (uint32_t i = 0; i < count; i++) {
        const struct mail_model *mail = &mails[i];
        bool stays = mail->expires_ms == 0 || mail->expires_ms > c->entry->owner_ms;
        bool goods = mail->goods.amount > 0 || mail->goods.item > 0;
        stays |= goods && c->sim->player_shard[mail->from] == c->number &&
                 mailbox_is_full(c, mail->from);
        if (stays)
            continue;
        left++;
        send_back(c, mail, i);
    }
    if (left != r->returned)
        fail(c, "other mail goes back than has expired", r->returned);
}

void goods_effect(struct change *c, const ProtobufCMessage *response)
{
    const Holdfast__V1__MintResponse *mint = (const void *)response;

    switch (c->op.method) {
    case METHOD_MINT:
        (void)item_add(c, mint->items[0]->uid, ITEM_HELD,
                       (uint32_t)(c->player - c->sim->oracle->players));
        break;
    case METHOD_MAILBOX_SEND:
        if (c->op.authority.kind == AUTHORITY_SYSTEM)
            sent_by_game(c, (const void *)response);
        else
            sent(c, response);
        break;
    case METHOD_MAILBOX_CLAIM:
        claimed(c, (const void *)response);
        break;
    case METHOD_RETURN_EXPIRED:
        returned(c, (const void *)response);
        break;
    default:
        sent(c, response);
        break;
    }
}

void goods_opened(struct change *c, struct op_model *op)
{
    struct oracle *oracle = c->sim->oracle;
    struct wish wish = wish_of(c);

    if (c->sim->player_shard[wish.to] == c->number)
        fail(c, "is pending on one shard", wish.to);
    leave(c, &wish);
    transfer_open(c, &(struct transfer_model){ .from = wish.from,
                                               .to = wish.to,
                                               .op = (uint32_t)(op - oracle->ops) + 1,
                                               .goods = wish.goods,
                                               .expires_ms = wish.expires_ms });
    const struct transfer_model *t = &oracle->book.transfers[oracle->book.transfer_count - 1];
    if (c->outcome->channel.opened_seq != t->seq ||
        c->outcome->channel.destination != t->destination)
        fail(c, "sequence numbers have a gap", c->outcome->channel.opened_seq);
}

void goods_sealed(struct change *c, const struct op_model *op)
{
    struct transfer_model *t = transfer_find(book_of(c), c->number, c->outcome->channel.destination,
                                             c->outcome->channel.opened_seq);

    if (t == NULL || t->settled || t->op != (uint32_t)(op - c->sim->oracle->ops) + 1) {
        model_fail_op(c, op, "is sealed as pending, and is not on its way");
        return;
    }
    c->sim->counts.seals_too_late += t->decision == APPLIED;
    t->sealed = true;
}

/* ---- the destination decides ---- */
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
    const struct goods_book *book = book_of(c);
    bool same =
        number_of(credit->to_player_id) == t->to && number_of(mail->from_player_id) == t->from &&
        mail->n_currencies == (t->goods.amount > 0) && mail->n_items == (t->goods.item > 0) &&
        (uint64_t)mail->expires_at_ms == t->expires_ms;

    if (same && t->goods.amount > 0)
        same = mail->currencies[0]->amount == t->goods.amount;
    if (same && t->goods.item > 0)
        same = strcmp(mail->items[0]->uid, book->items[t->goods.item - 1].uid) == 0;
    if (!same)
        fail(c, "a credit is not what was debited", credit->seq);
}

static void decide(struct change *c, struct transfer_model *t, bool is_credit,
                   const Holdfast__Internal__V1__ChannelResult *result)
{
    t->decision = decision_of((int)result->decision);
    if (t->decision == CANCELLED && (is_credit || !t->sealed))
        fail(c, "a transfer is cancelled that nobody sealed", t->seq);
    if (t->decision == REJECTED && !mailbox_is_full(c, t->to))
        fail(c, "a transfer is rejected without a reason", t->seq);
    c->sim->counts.transfers_cancelled += t->decision == CANCELLED;
    if (t->decision != APPLIED)
        return;
    if (!is_credit || mailbox_is_full(c, t->to))
        fail(c, "a transfer is applied that may not be", t->seq);
    snprintf(t->mail, sizeof t->mail, "%s", result->mail_id);
    mail_arrives(
        c, result->mail_id,
        &(struct mail_model){
            .player = t->to, .from = t->from, .expires_ms = t->expires_ms, .goods = t->goods });
}

static void txn_decide(struct change *c, struct transfer_model *t,
                       const Holdfast__Internal__V1__ChannelCredit *credit,
                       const Holdfast__Internal__V1__ChannelResult *result)
{
    t->decision = decision_of((int)result->decision);
    txn_delivered(c, t, credit != NULL, credit, (int)result->decision);
}

static void receipt_decide(struct change *c, struct transfer_model *t,
                           const Holdfast__Internal__V1__ChannelCredit *credit,
                           const Holdfast__Internal__V1__ChannelResult *result)
{
    t->decision = decision_of((int)result->decision);
    if (t->decision == CANCELLED && (credit != NULL || !t->sealed))
        fail(c, "a receipt is cancelled that nobody sealed", t->seq);
    receipt_delivered(c, t, credit);
}

static void one_result(struct change *c, uint32_t source,
                       const Holdfast__Internal__V1__ChannelCredit *credit,
                       const Holdfast__Internal__V1__ChannelResult *result)
{
    struct transfer_model *t = transfer_find(book_of(c), source, c->number, result->seq);

    if (t == NULL) {
        fail(c, "a credit without a committed debit", result->seq);
        return;
    }
    if (credit != NULL && t->txn == 0 && t->receipt == 0)
        check_credit(c, t, credit);
    if (result->decision == DECISION(SETTLED)) {
        c->sim->counts.credits_below_watermark++;
        if (!t->settled)
            fail(c, "a transfer that is open is ignored as settled", result->seq);
    } else if (result->decision == DECISION(UNSPECIFIED)) {
        fail(c, "a record means something else than before", result->seq);
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
            fail(c, "a transfer is decided a second time", result->seq);
    }
}

static void watermark(struct change *c, uint32_t source, uint64_t asked, uint64_t logged)
{
    struct goods_book *book = book_of(c);
    uint64_t *stands = &book->watermark[source][c->number];

    for (uint64_t seq = *stands + 1; seq <= asked; seq++) {
        const struct transfer_model *t = transfer_find(book, source, c->number, seq);
        if (t == NULL || !t->settled)
            fail(c, "the watermark passes an open transfer", seq);
    }
    if (logged < *stands || logged > (asked > *stands ? asked : *stands))
        fail(c, "the watermark is not what was asked for", logged);
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
        fail(c, "a batch has other results than records", response->n_results);
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
            transfer_find(&sim->oracle->book, request->source, destination, result->seq);
        if (is_later(response, result))
            continue;
        if (t == NULL || t->decision == UNDECIDED)
            sim_fail(sim, destination,
                     "a decision on transfer %" PRIu64 " of shard %u is told "
                     "that is not in the log",
                     result->seq, request->source);
    }
}

/* ---- the source logs the decision ---- */
static void refund(struct change *c, const struct transfer_model *t)
{
    struct player_model *from = player_at(c, t->from);

    c->sim->counts.transfers_refunded++;
    if (t->goods.amount > 0 || t->goods.item > 0)
        from->now.version++;
    give(c, t->from, &t->goods,
         slice_from_text(strchr(c->sim->oracle->ops[t->op - 1].key, ' ') + 1));
    model_remember(from, c->entry->index);
}

static void come_back(struct change *c, const struct transfer_model *t, uint32_t place)
{
    uint8_t id[ITEM_UID_BYTES];
    char text[ITEM_UID_TEXT_SIZE];

    item_uid_make(c->number, c->entry->dot.epoch, c->entry->dot.counter, place, id);
    item_uid_print(id, text);
    mail_arrives(c, text,
                 &(struct mail_model){ .player = t->from,
                                       .from = t->to,
                                       .expires_ms = c->entry->owner_ms,
                                       .goods = t->goods });
}

static void op_settled(struct change *c, const struct transfer_model *t)
{
    struct op_model *op = &c->sim->oracle->ops[t->op - 1];

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

static void settled_with(struct change *c, const Holdfast__Internal__V1__SettleRequest *request,
                         uint32_t first)
{
    for (size_t i = 0; i < request->n_items; i++) {
        const Holdfast__Internal__V1__ChannelResult *result = request->items[i]->result;
        struct transfer_model *t =
            transfer_find(book_of(c), c->number, request->destination, result->seq);
        if (result->decision == DECISION(UNSPECIFIED) || result->decision == DECISION(SETTLED) ||
            (t != NULL && t->settled))
            continue;
        if (t == NULL || t->decision == UNDECIDED ||
            t->decision != decision_of((int)result->decision)) {
            fail(c, "a transfer is settled by what was never decided", result->seq);
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

/* ---- what game servers ask for ---- */
const char *goods_pick_item(struct sim *sim, uint32_t player)
{
    const struct goods_book *book = &sim->oracle->book;

    if (book->item_count == 0)
        return NULL;
    uint64_t from = sim_between(sim, 0, book->item_count - 1);
    if (sim_chance(sim, 100))
        return book->items[from].uid;
    for (uint32_t i = 0; i < book->item_count; i++) {
        const struct item_model *item = &book->items[(from + i) % book->item_count];
        if (item->place == ITEM_HELD && item->player == player)
            return item->uid;
    }
    return NULL;
}

const char *goods_pick_mail(struct sim *sim, uint32_t player)
{
    const struct goods_book *book = &sim->oracle->book;

    if (book->mail_count == 0)
        return NULL;
    uint64_t from = sim_between(sim, 0, book->mail_count - 1);
    if (sim_chance(sim, 50))
        return book->mails[from].id;
    for (uint32_t i = 0; i < book->mail_count; i++) {
        const struct mail_model *mail = &book->mails[(from + i) % book->mail_count];
        if (!mail->gone && mail->player == player)
            return mail->id;
    }
    return NULL;
}
