#include "node/core/repair/record_find.h"

#include <string.h>

#include "idl/method.h"
#include "node/core/channel/channel_row.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/ledger.h"
#include "node/core/goods/mailbox.h"
#include "node/core/receipt/receipt.h"
#include "node/core/rows/rows.h"
#include "node/core/transaction/txn_row.h"

#define KIND(name)  HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_##name
#define TXN_OPEN    HOLDFAST__INTERNAL__V1__TXN_STATE__TXN_STATE_OPEN
#define LOOK_AHEAD  256u
#define ENTRIES_MAX 4096u /* Of a ledger, the newest first. */
#define STEPS_AHEAD 128u  /* Of an item's history, from the first on. */
#define STEPS_MAX   1024u
#define PAGE_ROWS   1000u

typedef Holdfast__Internal__V1__TxnRow txn_row;

/* ---- which transaction asks by it ---- */

struct txn_search {
    const struct record_look *look;
    struct slice last; /* Key. */
    uint32_t count;
    txn_row *row; /* NULL: not found yet. */
    struct slice key;
};

static bool asks_by(const txn_row *row, uint32_t other, uint64_t seq)
{
    for (size_t i = 0; i < row->n_members; i++) {
        if (row->members[i]->shard == other && row->members[i]->seq == seq)
            return row->members[i]->state == TXN_OPEN;
    }
    return false;
}

static bool take_txn(void *user, struct slice key, struct slice value)
{
    struct txn_search *search = user;
    struct arena *arena = search->look->arena;
    txn_row *row = txn_decode(arena, value);

    search->count++;
    search->last = arena_copy(arena, key);
    if (row == NULL || !asks_by(row, search->look->other, search->look->seq))
        return true;
    search->row = row;
    search->key = search->last;
    return false;
}

/* Rows of this table are few: one for each transaction that is not decided everywhere. */
static err txn_of_record(const struct record_look *look, struct record_sender *found)
{
    const uint8_t letter = TABLE_TXN;
    const struct slice prefix = { &letter, 1 };
    struct txn_search search = { .look = look, .last = prefix };
    uint32_t before;

    do {
        const struct state_range range = { prefix, search.last, PAGE_ROWS };
        before = search.count;
        err e = state_range_visit(look->state, &range, look->need, take_txn, &search);
        if (e != ERR_OK)
            return e;
    } while (search.row == NULL && search.count == before + PAGE_ROWS);
    if (search.row == NULL)
        return ERR_OK;
    struct reader reader = reader_from(search.key);
    (void)read_u8(&reader);
    found->kind = RECORD_KIND(PREPARE);
    found->txn = search.row;
    found->player_id = search.row->player_id;
    found->op_id = search.row->op_id;
    found->ref.home = look->shard;
    found->ref.destination = read_u16_be(&reader);
    found->ref.seq = read_u64_be(&reader);
    return ERR_OK;
}

/* ---- which operation waits for it ---- */

static bool is_transaction(uint32_t method)
{
    return method == METHOD_EXECUTE_TRANSACTION || method == METHOD_SWAP_GOODS;
}

static bool waits_for(const struct record_look *look, const struct outcome_row *row)
{
    struct channel_ref ref;

    return row->state == OUTCOME_ROW_PENDING && row->method != METHOD_START_SESSION &&
           channel_ref_decode(row->body, &ref) && ref.shard == look->other && ref.seq == look->seq;
}

static err waiting_find(const struct record_look *look, const channel_record_told *stated,
                        struct record_sender *found)
{
    struct slice op_id = slice_from_text(stated->op_id);
    struct op_id id;
    const char *why;

    if (player_id_check(slice_from_text(stated->player_id)) != ERR_OK ||
        op_id_parse(op_id, &id, &why) != ERR_OK)
        return ERR_OK;
    struct slice entity = entity_of_player(look->arena, stated->player_id);
    enum state_found row = outcome_row_find(look->state, entity, &id, look->need, &found->outcome);
    if (row == STATE_MISSING)
        return ERR_NEED;
    if (row == STATE_ABSENT || !waits_for(look, &found->outcome))
        return ERR_OK;
    found->outcome.body = (struct slice){ 0 };
    found->entity = entity;
    found->id = id;
    found->player_id = stated->player_id;
    found->op_id = stated->op_id;
    found->kind = receipt_is(op_id) ? RECORD_KIND(RECEIPT) : RECORD_KIND(MAIL);
    if (is_transaction(found->outcome.method)) { /* Its row is lost, too: txn_vote aborts it. */
        found->kind = RECORD_KIND(PREPARE);
        found->ref = (struct txn_ref){ look->shard, look->other, look->seq };
    }
    return ERR_OK;
}

/* ---- what it carries ---- */

/* Where among its steps the debit stands: the ledger has no steps of transfers. 0: not known. */
static err step_find(const struct record_look *look, const struct record_sender *found,
                     Holdfast__V1__Item *item)
{
    uint8_t uid[ITEM_UID_BYTES];
    struct history_row history;
    struct row_key key;
    struct slice value;

    if (item_uid_parse(slice_from_text(item->uid), uid) != ERR_OK)
        return ERR_OK;
    for (uint32_t from = 1; from < STEPS_MAX && item->step == 0; from += STEPS_AHEAD) {
        bool missing = false;
        for (uint32_t step = from; step < from + STEPS_AHEAD; step++) {
            row_key_history(&key, uid, step);
            enum state_found row = row_find(look->state, &key, look->need, &value);
            missing |= row == STATE_MISSING;
            if (row == STATE_PRESENT &&
                history_row_decode(row_key_slice(&key), value, &history) == ERR_OK &&
                history.ledger_seq == found->entry->seq &&
                slice_equal(history.entity, found->entity) && !history.held)
                item->step = step;
        }
        if (missing)
            return ERR_NEED;
    }
    return ERR_OK;
}

static err items_tell(const struct record_look *look, struct record_sender *found)
{
    Holdfast__V1__LedgerEntry *entry = found->entry;
    err result = ERR_OK;

    if (!entry->items_taken)
        return ERR_OK;
    for (size_t i = 0; i < entry->n_items; i++) {
        err e = entry->items[i]->step == 0 ? step_find(look, found, entry->items[i]) : ERR_OK;
        if (e != ERR_OK)
            result = e;                         /* Go on, so that every missing row is noted. */
        if (entry->items[i]->minted_at_ms == 0) /* No entry of a transfer says it. */
            entry->items[i]->minted_at_ms = entry->at_ms;
    }
    found->goods->n_items = entry->n_items;
    found->goods->items = entry->items;
    for (size_t i = 0; i < entry->n_items && result == ERR_OK; i++)
        found->goods_told &= entry->items[i]->step > 0;
    return result;
}

/* What left the player, out of its balance or out of a reservation. */
static void currencies_tell(const struct record_look *look, struct record_sender *found)
{
    const Holdfast__V1__LedgerEntry *entry = found->entry;
    Holdfast__V1__Mail *goods = found->goods;

    goods->currencies =
        arena_messages(look->arena, &holdfast__v1__currency_amount__descriptor, entry->n_changes);
    for (size_t i = 0; i < entry->n_changes; i++) {
        const Holdfast__V1__LedgerChange *change = entry->changes[i];
        int64_t left;
        if (__builtin_add_overflow(change->amount, change->reserved, &left) || left > 0 ||
            left < -AMOUNT_MAX) {
            found->goods_told = false;
            return;
        }
        if (left == 0)
            continue;
        goods->currencies[goods->n_currencies]->currency = change->currency;
        goods->currencies[goods->n_currencies++]->amount = -left;
    }
}

/* ERR_NEED, with those before it that will be asked for next. */
static err need_entries(const struct record_look *look, struct slice entity, uint64_t seq)
{
    struct slice row;

    for (uint64_t i = 0; i < LOOK_AHEAD && seq > i; i++)
        (void)!ledger_row_find(look->state, entity, seq - i, look->need, &row);
    return ERR_NEED;
}

/* -1: older than what the operation wrote, 0: that very entry, 1: younger. */
static int order_of(const Holdfast__V1__LedgerEntry *entry, struct dot dot)
{
    if (entry->dot->epoch != dot.epoch)
        return entry->dot->epoch < dot.epoch ? -1 : 1;
    return (entry->dot->counter > dot.counter) - (entry->dot->counter < dot.counter);
}

/* The entry that the operation wrote. *ret_sure: if there is none, it wrote none. ERR_NEED. */
static err entry_find(const struct record_look *look, struct record_sender *found, bool *ret_sure)
{
    uint64_t head;

    err e = ledger_head_find(look->state, found->entity, look->need, &head);
    *ret_sure = true;
    for (uint64_t seq = head; e == ERR_OK && seq > 0; seq--) {
        Holdfast__V1__LedgerEntry *entry = NULL;
        struct slice row;
        err looked = ledger_row_find(look->state, found->entity, seq, look->need, &row);
        if (looked == ERR_NEED)
            return need_entries(look, found->entity, seq);
        if (head - seq >= ENTRIES_MAX || looked != ERR_OK ||
            ledger_row_decode(row, look->arena, &entry) != ERR_OK ||
            (int)entry->kind == KIND(LOST)) {
            *ret_sure = false;
            if (head - seq >= ENTRIES_MAX)
                return ERR_OK;
            continue;
        }
        int order = order_of(entry, found->outcome.dot);
        if (order < 0)
            return ERR_OK;
        if (order == 0 && (int)entry->kind == KIND(TRANSFER) &&
            strcmp(entry->op_id, found->op_id) == 0) {
            found->entry = entry;
            return ERR_OK;
        }
    }
    return e;
}

static err goods_tell(const struct record_look *look, struct record_sender *found)
{
    bool sure;

    found->goods =
        (Holdfast__V1__Mail *)arena_message(look->arena, &holdfast__v1__mail__descriptor);
    err e = entry_find(look, found, &sure);
    if (e != ERR_OK)
        return e;
    if (found->entry == NULL) { /* A mail of a text alone writes no entry; all else does. */
        found->goods_told = sure && found->outcome.method == METHOD_SEND_MAIL;
        return ERR_OK;
    }
    found->goods_told = true;
    found->goods->reason = found->entry->reason;
    currencies_tell(look, found);
    return items_tell(look, found);
}

err record_sender_find(const struct record_look *look, const channel_record_told *stated,
                       struct record_sender *ret_found)
{
    *ret_found = (struct record_sender){ .player_id = "", .op_id = "" };
    err e = txn_of_record(look, ret_found);
    if (e == ERR_OK && ret_found->kind == RECORD_KIND(UNSPECIFIED) && stated != NULL)
        e = waiting_find(look, stated, ret_found);
    if (e == ERR_OK && ret_found->kind == RECORD_KIND(MAIL))
        e = goods_tell(look, ret_found);
    return e;
}

void record_sender_tell(const struct record_look *look, const struct record_sender *found,
                        channel_record_told *told)
{
    told->kind = found->kind;
    told->player_id = text_lend(found->player_id);
    told->op_id = text_lend(found->op_id);
    if (found->kind == RECORD_KIND(PREPARE)) {
        told->transaction = (Holdfast__V1__TransactionRef *)arena_message(
            look->arena, &holdfast__v1__transaction_ref__descriptor);
        told->transaction->home_shard = found->ref.home;
        told->transaction->destination = found->ref.destination;
        told->transaction->seq = found->ref.seq;
    }
    if (!found->goods_told)
        return;
    told->n_currencies = found->goods->n_currencies;
    told->currencies = found->goods->currencies;
    told->n_items = found->goods->n_items;
    told->items = found->goods->items;
    told->ledger_seq = found->entry != NULL ? found->entry->seq : 0;
}

/* ---- at the receiver ---- */

struct mail_search {
    struct arena *arena;
    const channel_record_told *sent;
    struct slice last;
    uint32_t count;
    const char *mail_id; /* NULL: not found yet. */
    bool unreadable;
};

/* Mail that comes back is from who did not claim it, under the operation that sent it once. */
static bool take_mail(void *user, struct slice key, struct slice value)
{
    struct mail_search *search = user;
    const Holdfast__V1__Mail *mail = mail_decode(search->arena, value);
    char id[ITEM_UID_TEXT_SIZE];

    search->count++;
    search->last = arena_copy(search->arena, key);
    search->unreadable |= mail == NULL;
    if (mail == NULL || strcmp(mail->op_id, search->sent->op_id) != 0 ||
        mail->returned != ((int)search->sent->kind == RECORD_KIND(RETURNED_MAIL)) ||
        strcmp(mail->from_player_id, search->sent->player_id) != 0)
        return true;
    item_uid_print(key.data + key.size - ITEM_UID_BYTES, id);
    search->mail_id = arena_text(search->arena, slice_from_text(id));
    return false;
}

static err mail_find(const struct record_look *look, const channel_record_told *sent,
                     struct record_receiver *found)
{
    struct mail_search search = { .arena = look->arena, .sent = sent };
    struct row_key prefix;
    uint32_t before;

    row_key_mail_prefix(&prefix, entity_of_player(look->arena, sent->to_player_id));
    search.last = row_key_slice(&prefix);
    do {
        const struct state_range range = { row_key_slice(&prefix), search.last, PAGE_ROWS };
        before = search.count;
        err e = state_range_visit(look->state, &range, look->need, take_mail, &search);
        if (e != ERR_OK)
            return e;
    } while (search.mail_id == NULL && search.count == before + PAGE_ROWS);
    if (search.mail_id != NULL) {
        found->decision = RECORD_DECISION(APPLIED);
        found->mail_id = search.mail_id;
    } else if (search.unreadable) {
        found->unreadable = "a piece of the recipient's mail";
    }
    return ERR_OK;
}

/* A vote for it holds its players until the sender has settled it and tells how it was decided. */
static err vote_find(const struct record_look *look, const channel_record_told *sent,
                     struct record_receiver *found)
{
    const struct txn_ref ref = { sent->transaction->home_shard, sent->transaction->destination,
                                 sent->transaction->seq };
    Holdfast__Internal__V1__TxnVote *vote = (Holdfast__Internal__V1__TxnVote *)arena_message(
        look->arena, &holdfast__internal__v1__txn_vote__descriptor);
    err result = ERR_OK;

    vote->taken = arena_alloc(look->arena, sizeof *vote->taken * (sent->n_player_ids + 1));
    for (size_t i = 0; i < sent->n_player_ids; i++) {
        Holdfast__Internal__V1__TxnIntent *intent = NULL;
        struct slice entity = entity_of_player(look->arena, sent->player_ids[i]);
        enum state_found row = intent_find(look->state, look->arena, entity, look->need, &intent);
        if (row == STATE_MISSING)
            result = ERR_NEED;
        if (row == STATE_PRESENT && intent == NULL)
            found->unreadable = "what a transaction holds of a player";
        if (intent != NULL && txn_ref_equal(txn_ref_of(intent->txn), ref))
            vote->taken[vote->n_taken++] = intent->taken;
    }
    if (result != ERR_OK || found->unreadable != NULL)
        return result;
    found->decision = vote->n_taken > 0 ? RECORD_DECISION(APPLIED) : RECORD_DECISION(CANCELLED);
    found->vote = vote->n_taken > 0 ? vote : NULL;
    return ERR_OK;
}

/* To answer that it was bound is safe only if it was: it may be another player's. */
static err bound_find(const struct record_look *look, const channel_record_told *sent,
                      struct record_receiver *found)
{
    Holdfast__Internal__V1__OperationRecord status = HOLDFAST__INTERNAL__V1__OPERATION_RECORD__INIT;

    err e =
        receipt_status(look->state, look->arena, look->need, slice_from_text(sent->op_id), &status);
    if (e == ERR_NEED)
        return e;
    if (e != ERR_OK) {
        found->unreadable = "the receipt's row";
        return ERR_OK;
    }
    bool bound = status.bound_player_id != NULL && status.bound_player_id[0] != 0 &&
                 strcmp(status.bound_player_id, sent->player_id) == 0;
    found->decision = bound ? RECORD_DECISION(APPLIED) : RECORD_DECISION(CANCELLED);
    return ERR_OK;
}

err record_receiver_find(const struct record_look *look, const channel_record_told *sent,
                         struct record_receiver *ret_found)
{
    *ret_found = (struct record_receiver){ .mail_id = "" };
    switch ((int)sent->kind) {
    case RECORD_KIND(MAIL):
    case RECORD_KIND(RETURNED_MAIL):
        return mail_find(look, sent, ret_found);
    case RECORD_KIND(PREPARE):
        return vote_find(look, sent, ret_found);
    case RECORD_KIND(RECEIPT):
        return bound_find(look, sent, ret_found);
    case RECORD_KIND(FINISH): /* Those who voted for it cannot refuse. */
        ret_found->decision = RECORD_DECISION(APPLIED);
        break;
    default:
        break;
    }
    return ERR_OK;
}

static bool players_are_sound(const channel_record_told *sent)
{
    for (size_t i = 0; i < sent->n_player_ids; i++) {
        if (player_id_check(slice_from_text(sent->player_ids[i])) != ERR_OK)
            return false;
    }
    return sent->n_player_ids > 0 && sent->n_player_ids <= TXN_PLAYERS_MAX;
}

static bool ref_is_sound(const Holdfast__V1__TransactionRef *ref)
{
    return ref != NULL && ref->home_shard <= UINT16_MAX && ref->destination <= UINT16_MAX &&
           ref->seq > 0;
}

const char *record_sent_unsound(const channel_record_told *sent)
{
    bool mail =
        (int)sent->kind == RECORD_KIND(MAIL) || (int)sent->kind == RECORD_KIND(RETURNED_MAIL);
    bool transaction =
        (int)sent->kind == RECORD_KIND(PREPARE) || (int)sent->kind == RECORD_KIND(FINISH);
    uint8_t id[ITEM_UID_BYTES];
    struct op_id op_id;
    const char *why;

    if (!mail && !transaction && (int)sent->kind != RECORD_KIND(RECEIPT))
        return "record.kind";
    if (player_id_check(slice_from_text(sent->player_id)) != ERR_OK)
        return "record.player_id";
    if ((int)sent->kind == RECORD_KIND(RECEIPT) &&
        (!receipt_is(slice_from_text(sent->op_id)) ||
         op_id_parse(slice_from_text(sent->op_id), &op_id, &why) != ERR_OK))
        return "record.op_id";
    if (mail && player_id_check(slice_from_text(sent->to_player_id)) != ERR_OK)
        return "record.to_player_id";
    if (transaction && !ref_is_sound(sent->transaction))
        return "record.transaction";
    if (transaction && !players_are_sound(sent))
        return "record.player_ids";
    if (sent->mail_id[0] != 0 && item_uid_parse(slice_from_text(sent->mail_id), id) != ERR_OK)
        return "record.mail_id";
    return NULL;
}
