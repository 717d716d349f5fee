#include "node/core/goods/row_totals.h"

#include "node/core/codec/proto_scan.h"
#include "node/core/goods/ledger.h"
#include "node/core/player/player.h"
#include "node/core/rows/rows.h"

/* Field numbers of idl/: CurrencyAmount, Item, Mail; TxnDelta, TxnPart, TxnTaken, TxnIntent;
 * ChannelCredit, OutboxRow. */
#define FIELD_AMOUNT_CURRENCY 1u
#define FIELD_AMOUNT_AMOUNT   2u
#define FIELD_ITEM_UID        1u
#define FIELD_MAIL_CURRENCIES 3u
#define FIELD_MAIL_ITEMS      4u
#define FIELD_DELTA_AMOUNTS   1u
#define FIELD_DELTA_ADDED     2u
#define FIELD_DELTA_REMOVED   3u
#define FIELD_PART_TAKE       4u
#define FIELD_TAKEN_ITEMS     2u
#define FIELD_INTENT_PART     5u
#define FIELD_INTENT_TAKEN    6u
#define FIELD_CREDIT_MAIL     5u
#define FIELD_OUTBOX_CREDIT   1u
#define FIELD_OUTBOX_DELTA    121u

#define KIND(name) HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_##name

static bool add_uid_text(struct totals *totals, struct slice text, int sign)
{
    uint8_t uid[ITEM_UID_BYTES];

    if (item_uid_parse(text, uid) != ERR_OK)
        return false;
    totals_add_uid(totals, uid, sign);
    return true;
}

/* ---- protobuf rows: their goods are read where they stand, since decoding all of a record cost
 * more than what is counted of it ---- */

/* A CurrencyAmount. */
static bool add_amount_message(struct totals *totals, struct slice message, int sign)
{
    struct reader reader = reader_from(message);
    struct proto_field field;
    struct slice currency = { 0 };
    int64_t amount = 0;

    while (proto_scan_next(&reader, &field)) {
        if (field.number == FIELD_AMOUNT_CURRENCY && field.is_bytes)
            currency = field.bytes;
        else if (field.number == FIELD_AMOUNT_AMOUNT && field.is_varint)
            amount = (int64_t)field.varint;
    }
    if (!proto_scan_ended(&reader) || currency.size >= TOTALS_NAME_SIZE)
        return false;
    totals_add_amount(totals, currency, amount, sign);
    return true;
}

static bool add_item(struct totals *totals, struct slice item, int sign)
{
    struct slice uid;

    return proto_scan_bytes(item, FIELD_ITEM_UID, &uid) && add_uid_text(totals, uid, sign);
}

static bool add_mail(struct totals *totals, struct slice mail, int sign)
{
    struct reader reader = reader_from(mail);
    struct proto_field field;
    bool good = true;

    while (proto_scan_next(&reader, &field)) {
        if (field.number == FIELD_MAIL_CURRENCIES && field.is_bytes)
            good &= add_amount_message(totals, field.bytes, sign);
        else if (field.number == FIELD_MAIL_ITEMS && field.is_bytes)
            good &= add_item(totals, field.bytes, sign);
    }
    return good && proto_scan_ended(&reader);
}

/* A TxnDelta. */
static bool add_delta(struct totals *totals, struct slice delta, int sign)
{
    struct reader reader = reader_from(delta);
    struct proto_field field;
    bool good = true;

    while (proto_scan_next(&reader, &field)) {
        if (field.number == FIELD_DELTA_AMOUNTS && field.is_bytes)
            good &= add_amount_message(totals, field.bytes, sign);
        else if (field.number == FIELD_DELTA_ADDED && field.is_bytes)
            good &= add_uid_text(totals, field.bytes, sign);
        else if (field.number == FIELD_DELTA_REMOVED && field.is_bytes)
            good &= add_uid_text(totals, field.bytes, -sign);
    }
    return good && proto_scan_ended(&reader);
}

/* What a TxnPart takes of currencies. */
static bool add_part(struct totals *totals, struct slice part, int sign)
{
    struct reader reader = reader_from(part);
    struct proto_field field;
    bool good = true;

    while (proto_scan_next(&reader, &field)) {
        if (field.number == FIELD_PART_TAKE && field.is_bytes)
            good &= add_amount_message(totals, field.bytes, sign);
    }
    return good && proto_scan_ended(&reader);
}

/* The items of a TxnTaken. */
static bool add_taken(struct totals *totals, struct slice taken, int sign)
{
    struct reader reader = reader_from(taken);
    struct proto_field field;
    bool good = true;

    while (proto_scan_next(&reader, &field)) {
        if (field.number == FIELD_TAKEN_ITEMS && field.is_bytes)
            good &= add_item(totals, field.bytes, sign);
    }
    return good && proto_scan_ended(&reader);
}

/* A transaction's escrow counts until FINISH; what comes then is in the record that says so. */
static bool add_intent(struct totals *totals, struct slice intent, int sign)
{
    struct slice part, taken;

    return proto_scan_bytes(intent, FIELD_INTENT_PART, &part) &&
           proto_scan_bytes(intent, FIELD_INTENT_TAKEN, &taken) && add_part(totals, part, sign) &&
           add_taken(totals, taken, sign);
}

/* ---- rows of bytes of their own ---- */

static bool player_of(struct slice row, struct arena *arena, struct player *ret_player)
{
    player_init(ret_player, (struct slice){ 0 });
    return row.size == 0 || player_decode(row, (struct slice){ 0 }, arena, ret_player) == ERR_OK;
}

static int64_t owned(const struct balance *balance)
{
    return (int64_t)((uint64_t)balance->amount + (uint64_t)balance->reserved);
}

static void add_balances(struct totals *totals, const struct player *player, uint32_t from,
                         int sign)
{
    for (uint32_t i = from; i < player->balance_count; i++)
        totals_add_amount(totals, player->balances[i].currency, owned(&player->balances[i]), sign);
}

/* Most changes of a player are of few of its balances, or of none. */
static bool change_player(struct totals *totals, struct arena *arena, struct slice before,
                          struct slice after)
{
    struct player old, new;
    bool good = player_of(before, arena, &old);
    uint32_t same = 0;

    good &= player_of(after, arena, &new);
    while (same < old.balance_count &&
           same < new.balance_count &&slice_equal(old.balances[same].currency,
                                                  new.balances[same].currency)) {
        int64_t was = owned(&old.balances[same]);
        int64_t is = owned(&new.balances[same]);
        if (was != is)
            totals_add_amount(totals, new.balances[same].currency,
                              (int64_t)((uint64_t)is - (uint64_t)was), 1);
        same++;
    }
    add_balances(totals, &old, same, -1);
    add_balances(totals, &new, same, 1);
    return good;
}

/* Whether an entry of this kind makes or uses up what it tells of; else it only moves it. */
static bool makes(Holdfast__V1__LedgerKind kind)
{
    return kind == KIND(GRANT) || kind == KIND(SPEND) || kind == KIND(MINT) || kind == KIND(MAIL) ||
           kind == KIND(CONSUME) || kind == KIND(REVERSAL) || kind == KIND(POST);
}

struct made {
    struct totals *totals;
    Holdfast__V1__LedgerKind kind;
    int sign;
};

static void made_amount(void *context, struct slice currency, int64_t amount, int64_t reserved)
{
    const struct made *made = context;

    totals_add_amount(made->totals, currency, (int64_t)((uint64_t)amount + (uint64_t)reserved),
                      -made->sign);
}

static void made_item(void *context, const uint8_t uid[ITEM_UID_BYTES], bool taken)
{
    const struct made *made = context;

    totals_add_uid(made->totals, uid, taken ? made->sign : -made->sign);
}

/* What was made counts against what is held. */
static bool add_entry(struct totals *totals, struct slice row, int sign)
{
    struct made made = { .totals = totals, .sign = sign };
    const struct ledger_visitor visitor = { made_amount, made_item, &made };
    uint64_t at_ms;

    if (ledger_row_peek(row, &made.kind, &at_ms) != ERR_OK)
        return false;
    return !makes(made.kind) || ledger_row_visit(row, &visitor) == ERR_OK;
}

/* False: malformed. ret_bytes->data is NULL if there is no such field. */
static bool find_field(struct slice message, uint32_t number, struct slice *ret_bytes)
{
    struct reader reader = reader_from(message);
    struct proto_field field;

    *ret_bytes = (struct slice){ 0 };
    while (proto_scan_next(&reader, &field)) {
        if (field.number == number && field.is_bytes)
            *ret_bytes = field.bytes;
    }
    return proto_scan_ended(&reader);
}

bool row_totals_record(struct totals *totals, struct slice row, int sign)
{
    struct slice credit, mail, delta;

    if (!find_field(row, FIELD_OUTBOX_CREDIT, &credit) || credit.data == NULL ||
        !find_field(row, FIELD_OUTBOX_DELTA, &delta) ||
        !find_field(credit, FIELD_CREDIT_MAIL, &mail))
        return false;
    if (mail.data != NULL && !add_mail(totals, mail, sign))
        return false;
    return delta.data == NULL || add_delta(totals, delta, sign);
}

static bool add_row(struct totals *totals, struct slice key, struct slice row, int sign)
{
    if (row.size == 0)
        return true;
    switch ((enum table)key.data[0]) {
    case TABLE_MAIL:
        return add_mail(totals, row, sign);
    case TABLE_OUTBOX:
        return row_totals_record(totals, row, sign);
    case TABLE_INTENT:
        return add_intent(totals, row, sign);
    case TABLE_LEDGER:
        return add_entry(totals, row, sign);
    case TABLE_NOTE:
        return add_delta(totals, row, -sign);
    case TABLE_PLAYER: /* These two: row_totals_add. */
    case TABLE_ITEM:
    case TABLE_SECTION: /* No goods stand in the rest. */
    case TABLE_HISTORY:
    case TABLE_MAILBOX:
    case TABLE_OPERATION:
    case TABLE_TYPED:
    case TABLE_KEYED:
    case TABLE_CHANNEL:
    case TABLE_INBOX:
    case TABLE_REVERSAL:
    case TABLE_RESERVATION:
    case TABLE_TXN:
    case TABLE_RECEIPT:
    case TABLE_DEFINITION:
    case TABLE_COLLECTION:
    case TABLE_RATE_RULES:
    case TABLE_RATE:
    case TABLE_FAVORITE:
    case TABLE_FAVORITES:
    case TABLE_FAVORED:
    case TABLE_FAVORER:
    case TABLE_REVIEW:
    case TABLE_PARTIAL:
    case TABLE_ADDED:
    case TABLE_ADDER:
    case TABLE_CHANGED:
    case TABLE_EMPTIED:
    case TABLE_NEWEST:
    case TABLE_PULLED:
    case TABLE_SHARE:
    case TABLE_TALLY:
    case TABLE_RANK:
    case TABLE_RECOUNT:
    case TABLE_ERASURE:
    case TABLE_EVENT:
    case TABLE_CONSUMER:
    case TABLE_METADATA:
    case TABLE_TIMER:
    case TABLE_META:
        break;
    }
    return true;
}

bool row_totals_add(struct totals *totals, struct arena *arena, struct slice key,
                    struct slice before, struct slice after)
{
    int items = (after.size > 0) - (before.size > 0);

    switch (key.data[0]) {
    case TABLE_ITEM:
        if (items != 0)
            totals_add_uid(totals, key.data + key.size - ITEM_UID_BYTES, items);
        return true;
    case TABLE_PLAYER:
        return change_player(totals, arena, before, after);
    default:
        break;
    }
    bool old = add_row(totals, key, before, -1);
    bool new = add_row(totals, key, after, 1);

    return old && new;
}
