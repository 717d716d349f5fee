#include "node/core/repair/record_repair.h"

#include <string.h>

#include "idl/limit.h"
#include "idl/method.h"
#include "node/core/channel/channel_out.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/json_canon.h"
#include "node/core/codec/text_rule.h"
#include "node/core/delivery/channel_settle.h"
#include "node/core/goods/goods.h"
#include "node/core/handler/refusal.h"
#include "node/core/transaction/txn_row.h"
#include "runtime/base/check.h"

#define OUTCOME_LIMIT "an operation whose outcome can be read"
#define TXN_OPEN      HOLDFAST__INTERNAL__V1__TXN_STATE__TXN_STATE_OPEN

typedef Holdfast__Internal__V1__OutboxRow outbox_row;

bool record_key_parse(const struct row_key *key, uint32_t *ret_other, uint64_t *ret_seq)
{
    struct reader reader = reader_from(row_key_slice(key));
    uint8_t table = read_u8(&reader);

    *ret_other = read_u16_be(&reader);
    *ret_seq = read_u64_be(&reader);
    return reader_finish(&reader) == ERR_OK && *ret_seq > 0 &&
           (table == TABLE_OUTBOX || table == TABLE_INBOX);
}

/* ---- what a person states ---- */

struct goods_check {
    struct arena *arena;
    struct refusal *refusal;
    const struct policy *policy;
    const channel_record_told *stated;
};

static const char *stated_field(const struct goods_check *c, size_t place, const char *name)
{
    return entry_field(c->arena, "record.currencies", place, c->stated->currencies[place]->currency,
                       name);
}

static err amount_check(const struct goods_check *c, size_t place)
{
    const Holdfast__V1__CurrencyAmount *amount = c->stated->currencies[place];

    if (policy_find_currency(c->policy, slice_from_text(amount->currency)) == NULL)
        return refuse_invalid(c->arena, c->refusal, stated_field(c, place, "currency"),
                              "a currency of the policy",
                              text_shorten(c->arena, slice_from_text(amount->currency)));
    if (amount->amount < 1 || amount->amount > GOODS_LARGE) /* A refund always fits: goods.h. */
        return refuse_number(c->arena, c->refusal, stated_field(c, place, "amount"),
                             "1 to 70368744177664", amount->amount);
    for (size_t i = 0; i < place; i++) {
        if (strcmp(c->stated->currencies[i]->currency, amount->currency) == 0)
            return refuse_twin(c->arena, c->refusal, stated_field(c, place, ""));
    }
    return ERR_OK;
}

static const char *item_unsound(const Holdfast__V1__Item *item)
{
    struct slice kind = slice_from_text(item->kind);
    struct slice attributes = slice_from_text(item->attributes);
    uint8_t uid[ITEM_UID_BYTES];
    const char *why;

    if (item_uid_parse(slice_from_text(item->uid), uid) != ERR_OK)
        return "uid";
    if (kind.size == 0 || kind.size > LIMIT_ITEM_KIND_BYTES || !text_is_clean(kind))
        return "kind";
    if (item->step == 0 || item->step > INT32_MAX)
        return "step";
    json_t *json = attributes.size > 0 && attributes.size <= LIMIT_ITEM_ATTRIBUTES_BYTES
                       ? json_canon_parse(attributes, &why)
                       : NULL;
    bool object = json_is_object(json);
    json_decref(json);
    return object || attributes.size == 0 ? NULL : "attributes";
}

static err item_check(const struct goods_check *c, size_t place)
{
    const Holdfast__V1__Item *item = c->stated->items[place];
    const char *field = item_unsound(item);

    for (size_t i = 0; i < place && field == NULL; i++) {
        if (strcmp(c->stated->items[i]->uid, item->uid) == 0)
            field = "uid";
    }
    if (field == NULL)
        return ERR_OK;
    return refuse_invalid(c->arena, c->refusal,
                          arena_printf(c->arena, "record.items[%zu].%s", place, field),
                          "uid, kind, attributes and the newest step, as TraceItem tells them, and "
                          "each item once",
                          text_shorten(c->arena, slice_from_text(item->uid)));
}

err record_goods_check(struct arena *arena, struct refusal *refusal, const struct policy *policy,
                       const channel_record_told *stated)
{
    const struct goods_check check = { arena, refusal, policy, stated };
    err e = ERR_OK;

    if (stated->n_currencies > LEDGER_CHANGES_MAX)
        return refuse_number(arena, refusal, "record.currencies", "at most 16",
                             (int64_t)stated->n_currencies);
    if (stated->n_items > LEDGER_ITEMS_MAX)
        return refuse_number(arena, refusal, "record.items", "at most 64",
                             (int64_t)stated->n_items);
    for (size_t i = 0; i < stated->n_currencies && e == ERR_OK; i++)
        e = amount_check(&check, i);
    for (size_t i = 0; i < stated->n_items && e == ERR_OK; i++)
        e = item_check(&check, i);
    return e;
}

/* ---- a record that asks for itself to be cancelled ---- */

/* One repair while it is applied. */
struct step {
    struct apply_context *context;
    struct record_repair *repair;
    struct record_look look;
    struct record_sender found;
    const channel_record_told *stated; /* Never NULL. */
    bool by_person;                    /* Of FINISH: no row tells how it was decided. */
};

static err refuse_step(struct step *step, const char *field, const char *limit, const char *value)
{
    return refuse_invalid(step->context->arena, step->context->refusal, field, limit, value);
}

static bool states_goods(const struct step *step)
{
    return step->stated->n_currencies + step->stated->n_items > 0;
}

/* It was open at every cut since it was opened; which those are is lost, so it counts for the next
 * ones alone. */
static void record_store(struct step *step, outbox_row *row,
                         Holdfast__Internal__V1__ChannelCredit *credit)
{
    struct apply_context *context = step->context;

    credit->seq = step->repair->seq;
    row->credit = credit;
    row->cancel = true;
    row->opened_cut = context->meta->cut_id;
    if (row->opened_at_ms == 0)
        row->opened_at_ms = context->owner_ms;
    outbox_store(context, step->repair->other, row);
    context->channel->destination = step->repair->other;
    context->channel->cancelled_seq = step->repair->seq;
    context->channel->touched = true;
}

/* The answer of its caller, if it was applied after all. */
static struct slice response_of(struct step *step)
{
    Holdfast__V1__SendMailResponse told = HOLDFAST__V1__SEND_MAIL_RESPONSE__INIT;
    Holdfast__V1__TransferItemsResponse items = HOLDFAST__V1__TRANSFER_ITEMS_RESPONSE__INIT;
    const Holdfast__V1__LedgerEntry *entry = step->found.entry;
    struct arena *arena = step->context->arena;
    size_t count = entry != NULL ? entry->n_changes : 0;

    if (entry == NULL)
        return (struct slice){ 0 };
    if (step->found.outcome.method == METHOD_TRANSFER_ITEMS) {
        items.ledger_seq = entry->seq;
        items.n_items = step->found.goods->n_items;
        items.items = step->found.goods->items;
        return arena_pack(arena, &items.base);
    }
    told.ledger_seq = entry->seq;
    told.balances = arena_messages(arena, &holdfast__v1__currency_amount__descriptor, count);
    told.reserved = arena_messages(arena, &holdfast__v1__currency_amount__descriptor, count);
    for (size_t i = 0; i < count; i++) {
        const Holdfast__V1__LedgerChange *change = entry->changes[i];
        told.balances[told.n_balances]->currency = change->currency;
        told.balances[told.n_balances++]->amount = change->balance_after;
        if (change->reserved_after == 0)
            continue;
        told.reserved[told.n_reserved]->currency = change->currency;
        told.reserved[told.n_reserved++]->amount = change->reserved_after;
    }
    if (step->found.outcome.method == METHOD_SEND_MAIL) {
        told.n_items = step->found.goods->n_items;
        told.items = step->found.goods->items;
    }
    return arena_pack(arena, &told.base);
}

/* An item that the sender holds never left. ERR_NEED; ERR_INVALID. */
static err items_are_gone(struct step *step, const char *player_id)
{
    struct slice entity = entity_of_player(step->context->arena, player_id);
    uint8_t uid[ITEM_UID_BYTES];
    struct row_key key;
    struct slice value;
    err result = ERR_OK;

    for (size_t i = 0; i < step->stated->n_items; i++) {
        const char *text = step->stated->items[i]->uid;
        CHECK(item_uid_parse(slice_from_text(text), uid) == ERR_OK); /* record_goods_check. */
        row_key_item(&key, entity, uid);
        enum state_found found = row_find(step->context->state, &key, step->context->need, &value);
        if (found == STATE_MISSING)
            result = ERR_NEED;
        if (found == STATE_PRESENT && result == ERR_OK)
            result = refuse_step(step, "record.items", "items that the player does not hold", text);
    }
    return result;
}

/* Goods that a person states, under the reason of the repair. ERR_NEED; ERR_INVALID. */
static err goods_stated(struct step *step, const char *player_id, Holdfast__V1__Mail *mail)
{
    struct apply_context *context = step->context;

    if (!states_goods(step) && !step->repair->give_up)
        return refuse_step(step, "record.currencies",
                           "what the sender gets back if it was not applied, which no entry of its "
                           "ledger tells; or give_up",
                           "");
    if (step->repair->give_up)
        return ERR_OK;
    err e =
        record_goods_check(context->arena, context->refusal, &context->meta->policy, step->stated);
    if (e == ERR_OK)
        e = items_are_gone(step, player_id);
    mail->n_currencies = step->stated->n_currencies;
    mail->currencies = step->stated->currencies;
    mail->n_items = step->stated->n_items;
    mail->items = step->stated->items;
    mail->reason = text_lend(step->repair->reason);
    return e;
}

/* What is known needs no person; nor may one change it. */
static err nothing_stated(struct step *step, const char *why)
{
    if (step->repair->give_up)
        return refuse_step(step, "give_up", why, "true");
    if (states_goods(step))
        return refuse_step(step, "record.currencies", why, "");
    return ERR_OK;
}

static err make_mail(struct step *step)
{
    Holdfast__Internal__V1__ChannelCredit credit = HOLDFAST__INTERNAL__V1__CHANNEL_CREDIT__INIT;
    outbox_row row = HOLDFAST__INTERNAL__V1__OUTBOX_ROW__INIT;
    Holdfast__V1__Mail *mail = step->found.goods;

    if (!step->found.goods_told)
        holdfast__v1__mail__init(mail);
    err e = step->found.goods_told
                ? nothing_stated(step, "nothing: the sender's ledger tells what it carries")
                : goods_stated(step, step->found.player_id, mail);
    if (e != ERR_OK)
        return e;
    struct slice response = response_of(step);
    mail->from_player_id = text_lend(step->found.player_id);
    mail->op_id = text_lend(step->found.op_id);
    credit.op_id = mail->op_id;
    credit.mail = mail;
    row.player_id = mail->from_player_id;
    row.method = step->found.outcome.method;
    row.attempt = step->found.outcome.attempt;
    row.opened_at_ms = step->found.outcome.decided_at_ms;
    row.authority = step->found.entry != NULL ? step->found.entry->authority : row.authority;
    row.response = (ProtobufCBinaryData){ response.size, (uint8_t *)(uintptr_t)response.data };
    record_store(step, &row, &credit);
    step->repair->told->n_currencies = mail->n_currencies;
    step->repair->told->currencies = mail->currencies;
    step->repair->told->n_items = mail->n_items;
    step->repair->told->items = mail->items;
    return ERR_OK;
}

static err make_prepare(struct step *step)
{
    Holdfast__Internal__V1__ChannelCredit credit = HOLDFAST__INTERNAL__V1__CHANNEL_CREDIT__INIT;
    Holdfast__Internal__V1__TxnPrepare prepare = HOLDFAST__INTERNAL__V1__TXN_PREPARE__INIT;
    outbox_row row = HOLDFAST__INTERNAL__V1__OUTBOX_ROW__INIT;

    err e = nothing_stated(step, "nothing: what a transaction holds comes back when it is decided");
    if (e != ERR_OK)
        return e;
    prepare.txn = txn_ref_message(step->context->arena, step->found.ref);
    prepare.player_id = text_lend(step->found.player_id);
    credit.op_id = text_lend(step->found.op_id);
    credit.prepare = &prepare;
    row.player_id = prepare.player_id;
    row.method = METHOD_EXECUTE_TRANSACTION;
    record_store(step, &row, &credit);
    return ERR_OK;
}

/* Mail on its way back to who sent it; it comes back to the mailbox where it expired. */
static err make_returned(struct step *step)
{
    Holdfast__Internal__V1__ChannelCredit credit = HOLDFAST__INTERNAL__V1__CHANNEL_CREDIT__INIT;
    outbox_row row = HOLDFAST__INTERNAL__V1__OUTBOX_ROW__INIT;
    Holdfast__V1__Mail mail = HOLDFAST__V1__MAIL__INIT;
    const channel_record_told *stated = step->stated;

    if (player_id_check(slice_from_text(stated->player_id)) != ERR_OK)
        return refuse_step(step, "record.player_id", "the player whose mailbox it left", "");
    if (player_id_check(slice_from_text(stated->to_player_id)) != ERR_OK)
        return refuse_step(step, "record.to_player_id", "the player who sent that mail", "");
    /* A longer one would be a row that no replica can read. */
    if (step->context->version >= COUNTERPART_APPLY_VERSION &&
        strlen(stated->op_id) > OP_ID_BYTES_MAX)
        return refuse_step(step, "record.op_id", "at most 160 bytes",
                           text_shorten(step->context->arena, slice_from_text(stated->op_id)));
    err e = goods_stated(step, stated->player_id, &mail);
    if (e != ERR_OK)
        return e;
    mail.from_player_id = stated->player_id;
    mail.returned = true;
    mail.op_id = stated->op_id;
    credit.to_player_id = stated->to_player_id;
    credit.mail = &mail;
    row.player_id = stated->player_id;
    row.method = METHOD_RETURN_EXPIRED_MAIL;
    row.mail_return = true;
    record_store(step, &row, &credit);
    return ERR_OK;
}

/* ---- records that go ---- */

/* Its caller's next try is a first one, or follows one that was refused; a receipt that was bound
 * to it is found so. */
static err drop_receipt(struct step *step)
{
    struct apply_context context = *step->context;
    struct op op = { .entity = step->found.entity, .id = step->found.id };

    err e = nothing_stated(step, "nothing: no goods wait for a receipt");
    if (e == ERR_OK)
        e = channel_record_drop(step->context, step->repair->other, step->repair->seq);
    if (e != ERR_OK)
        return e;
    context.op = &op;
    e = outcome_row_withdraw(&context, &op.id);
    step->repair->dropped = e == ERR_OK;
    return e;
}

/* ---- how a transaction was decided ---- */

/* From the version on that knows of it; before, it meant nothing. */
static int stated_decision(const struct step *step)
{
    return step->context->version >= DECISION_STATED_APPLY_VERSION
               ? (int)step->stated->decision
               : (int)RECORD_DECISION(UNSPECIFIED);
}

/* No row of the transaction stands, nor an outcome that is its own: a seal, or the repair of an
 * outcome, says nothing of what was before. */
static bool is_untold(enum state_found row, enum state_found open,
                      const struct outcome_row *outcome)
{
    return open == STATE_ABSENT &&
           (row == STATE_ABSENT ||
            (outcome->method == 0 && outcome->state != OUTCOME_ROW_UNREADABLE));
}

/* ERR_INVALID: a person states something else than rows tell. */
static err decision_take(struct step *step, bool untold, struct outcome_row *outcome)
{
    int decision = stated_decision(step);
    bool committed = decision == RECORD_DECISION(COMMITTED);

    if (decision == RECORD_DECISION(UNSPECIFIED))
        return ERR_OK;
    if (!committed && decision != RECORD_DECISION(ABORTED))
        return refuse_step(step, "record.decision", "COMMITTED or ABORTED", "");
    if (!untold && committed != (outcome->state == OUTCOME_ROW_COMMITTED))
        return refuse_step(step, "record.decision", "what the transaction's outcome tells", "");
    step->by_person = untold;
    outcome->state = committed ? OUTCOME_ROW_COMMITTED : OUTCOME_ROW_ABORTED;
    return ERR_OK;
}

/* ERR_NEED; ERR_INVALID: it is not decided, or neither a row nor a person tells how. */
static err decided_find(struct step *step, struct txn_ref ref, struct outcome_row *outcome)
{
    struct apply_context *context = step->context;
    Holdfast__Internal__V1__TxnRow *txn = NULL;
    const char *text = step->stated->op_id;
    struct op_id id;
    const char *why;

    if (op_id_parse(slice_from_text(text), &id, &why) != ERR_OK)
        return refuse_step(step, "record.op_id", "the transaction's", "");
    enum state_found row =
        outcome_row_find(context->state, entity_of_player(context->arena, step->stated->player_id),
                         &id, context->need, outcome);
    enum state_found open = txn_find(context->state, context->arena, ref, context->need, &txn);
    if (row == STATE_MISSING || open == STATE_MISSING)
        return ERR_NEED;
    bool other = txn != NULL && (txn->state == TXN_OPEN || strcmp(txn->op_id, text) != 0);
    bool decided = row == STATE_PRESENT &&
                   (outcome->state == OUTCOME_ROW_COMMITTED ||
                    outcome->state == OUTCOME_ROW_REFUSED || outcome->state == OUTCOME_ROW_ABORTED);
    bool transaction =
        outcome->method == METHOD_EXECUTE_TRANSACTION || outcome->method == METHOD_SWAP_GOODS;
    bool untold =
        is_untold(row, open, outcome) && stated_decision(step) != RECORD_DECISION(UNSPECIFIED);
    if (!untold && (!decided || !transaction || other))
        return refuse_step(step, "record.op_id",
                           "a transaction of this player that is decided, and the one that "
                           "`transaction` names; or `decision`, where no row tells of it",
                           text_shorten(context->arena, slice_from_text(text)));
    return decision_take(step, untold, outcome);
}

/* What comes to one player from others; nothing, if it was not committed. */
static err give_of(struct step *step, const Holdfast__V1__ExecuteTransactionResponse *response,
                   const char *player_id, Holdfast__Internal__V1__TxnGive *give)
{
    uint32_t shard_count = step->context->op->shard_count;

    give->player_id = text_lend(player_id);
    if (shard_count > 0 &&
        channel_shard_of(step->context->arena, player_id, shard_count) != step->repair->other)
        return refuse_step(step, "record.player_ids", "players of the other shard", player_id);
    if (response == NULL)
        return ERR_OK;
    for (size_t i = 0; i < response->n_players; i++) {
        const Holdfast__V1__TransactionOutcome *outcome = response->players[i];
        if (strcmp(outcome->player_id, player_id) != 0)
            continue;
        give->n_items = outcome->n_items;
        give->items = outcome->items;
        for (size_t j = 0; j < give->n_items; j++) {
            if (!txn_uids_are_sound(1, &give->items[j]->uid))
                return refuse_step(step, "record.op_id", OUTCOME_LIMIT, step->stated->op_id);
        }
        if (give->n_items <= TXN_ITEMS_MAX)
            return ERR_OK;
    }
    return refuse_step(step, "record.player_ids", "players of the transaction", player_id);
}

/* What comes to the one player from others, as a person says. */
static err give_stated(struct step *step, Holdfast__Internal__V1__TxnFinish *finish)
{
    struct apply_context *context = step->context;
    const channel_record_told *stated = step->stated;

    if (step->repair->give_up)
        return refuse_step(step, "give_up", "false: `items` say what comes to the player", "true");
    if (stated->n_currencies > 0)
        return refuse_step(step, "record.currencies",
                           "nothing: the player's own shard knows what it gets", "");
    if (stated->n_items > 0 && finish->n_gives != 1)
        return refuse_step(step, "record.items", "items of one player alone", "");
    err e = record_goods_check(context->arena, context->refusal, &context->meta->policy, stated);
    if (e == ERR_OK)
        e = items_are_gone(step, stated->player_id);
    finish->gives[0]->n_items = stated->n_items;
    finish->gives[0]->items = stated->items;
    return e;
}

static err finish_fill(struct step *step, const struct outcome_row *outcome,
                       Holdfast__Internal__V1__TxnFinish *finish)
{
    struct arena *arena = step->context->arena;
    const Holdfast__V1__ExecuteTransactionResponse *response = NULL;
    err e = ERR_OK;

    finish->commit = outcome->state == OUTCOME_ROW_COMMITTED;
    if (finish->commit && !step->by_person) {
        response = (const void *)arena_unpack(
            arena, &holdfast__v1__execute_transaction_response__descriptor, outcome->body);
        if (response == NULL)
            return refuse_step(step, "record.op_id", OUTCOME_LIMIT, step->stated->op_id);
    }
    finish->n_gives = step->stated->n_player_ids;
    finish->gives =
        arena_messages(arena, &holdfast__internal__v1__txn_give__descriptor, finish->n_gives);
    for (size_t i = 0; i < finish->n_gives && e == ERR_OK; i++)
        e = give_of(step, response, step->stated->player_ids[i], finish->gives[i]);
    if (e == ERR_OK && step->by_person && finish->commit)
        e = give_stated(step, finish);
    return e;
}

static err send_finish(struct step *step)
{
    Holdfast__Internal__V1__TxnFinish finish = HOLDFAST__INTERNAL__V1__TXN_FINISH__INIT;
    const channel_record_told *stated = step->stated;
    struct apply_context *context = step->context;
    struct outcome_row outcome = { 0 };
    const char *field = record_sent_unsound(stated);
    uint64_t seq = 0;

    if (field != NULL || stated->transaction->home_shard != context->shard)
        return refuse_step(step, field != NULL ? field : "record.transaction.home_shard",
                           "what GetChannel of the other shard tells of a player who is held", "");
    const struct txn_ref ref = { context->shard, stated->transaction->destination,
                                 stated->transaction->seq };
    err e = decided_find(step, ref, &outcome);
    if (e == ERR_OK && !(step->by_person && outcome.state == OUTCOME_ROW_COMMITTED))
        e = nothing_stated(step, "nothing: what a transaction moves is held by its players");
    finish.txn = txn_ref_message(context->arena, ref);
    if (e == ERR_OK)
        e = finish_fill(step, &outcome, &finish);
    if (e == ERR_OK)
        e = channel_record_drop(context, step->repair->other, step->repair->seq);
    if (e != ERR_OK)
        return e;
    const struct channel_record record = {
        .to_player_id = stated->player_ids[0],
        .player_id = stated->player_id,
        .op_id = stated->op_id,
        .method = METHOD_EXECUTE_TRANSACTION,
        .finish = &finish,
    };
    step->repair->dropped = true;
    e = channel_record_open(context, step->repair->other, &record, &seq);
    step->repair->told->seq = seq;
    return e;
}

/* ---- which of them ---- */

/* No row knows of an operation that waits for it. */
static err repair_unknown(struct step *step)
{
    switch ((int)step->stated->kind) {
    case RECORD_KIND(FINISH):
        return send_finish(step);
    case RECORD_KIND(RETURNED_MAIL):
        return make_returned(step);
    default:
        break;
    }
    if (!step->repair->give_up)
        return refuse_step(
            step, "record.op_id",
            "the operation, and its player, that waits for this very record; or the "
            "kind FINISH or RETURNED_MAIL; or give_up",
            text_shorten(step->context->arena, slice_from_text(step->stated->op_id)));
    step->repair->dropped = true;
    return channel_record_drop(step->context, step->repair->other, step->repair->seq);
}

static err repair_known(struct step *step)
{
    if ((int)step->stated->kind != RECORD_KIND(UNSPECIFIED) &&
        step->stated->kind != step->found.kind)
        return refuse_step(step, "record.kind", "what the sender's other rows say it is", "");
    record_sender_tell(&step->look, &step->found, step->repair->told);
    switch ((int)step->found.kind) {
    case RECORD_KIND(MAIL):
        return make_mail(step);
    case RECORD_KIND(PREPARE):
        return make_prepare(step);
    default:
        return drop_receipt(step);
    }
}

err record_repair(struct apply_context *context, struct record_repair *repair)
{
    const channel_record_told nothing = HOLDFAST__V1__CHANNEL_RECORD__INIT;
    Holdfast__Internal__V1__ChannelOutRow *stands = NULL;
    struct step step = {
        .context = context,
        .repair = repair,
        .look = { context->arena, context->state, context->need, context->shard, repair->other,
                  repair->seq },
        .stated = repair->stated != NULL ? repair->stated : &nothing,
    };
    struct row_key key;

    enum state_found found =
        channel_out_find(context->state, context->arena, repair->other, context->need, &stands);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (found == STATE_PRESENT && stands == NULL)
        return refuse_step(&step, "key", RECORD_CHANNEL_LIMIT, "");
    repair->told->seq = repair->seq;
    if (stands == NULL || repair->seq <= stands->watermark || repair->seq > stands->last_seq) {
        row_key_outbox(&key, repair->other, repair->seq);
        state_delete(context->state, row_key_slice(&key));
        repair->dropped = true; /* It is open no more: only its row was left. */
        return ERR_OK;
    }
    err e = record_sender_find(&step.look, step.stated, &step.found);
    if (e != ERR_OK)
        return e;
    return step.found.kind == RECORD_KIND(UNSPECIFIED) ? repair_unknown(&step)
                                                       : repair_known(&step);
}
