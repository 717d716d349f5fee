#include "node/core/totals.h"

#include <stdlib.h>
#include <string.h>

#include "node/core/ledger.h"
#include "node/core/proto_scan.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"

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

void totals_deinit(struct totals *totals)
{
    free(totals->buckets);
    totals->buckets = NULL;
}

void totals_copy(struct totals *to, const struct totals *from)
{
    struct totals_bucket *buckets = NULL;

    CHECK(to != from);
    if (from->buckets != NULL) {
        buckets = mem_alloc(sizeof *buckets * TOTALS_BUCKETS);
        memcpy(buckets, from->buckets, sizeof *buckets * TOTALS_BUCKETS);
    }
    free(to->buckets);
    *to = *from;
    to->buckets = buckets;
}

static uint64_t uid_hash(const uint8_t uid[ITEM_UID_BYTES])
{
    return hash_u64((struct slice){ uid, ITEM_UID_BYTES });
}

uint32_t totals_bucket_of(const uint8_t uid[ITEM_UID_BYTES])
{
    return (uint32_t)(uid_hash(uid) % TOTALS_BUCKETS);
}

static void add_uid(struct totals *totals, const uint8_t uid[ITEM_UID_BYTES], int sign)
{
    uint64_t hash = uid_hash(uid);

    if (totals->buckets == NULL)
        totals->buckets = mem_zalloc(sizeof *totals->buckets * TOTALS_BUCKETS);
    struct totals_bucket *bucket = &totals->buckets[hash % TOTALS_BUCKETS];
    bucket->count += sign;
    bucket->hashes += sign > 0 ? hash : 0 - hash;
    totals->count += sign;
    totals->hashes += sign > 0 ? hash : 0 - hash;
}

/* The last place takes what has no room: a sum over several currencies is still zero over all.
 * Names are at most CURRENCY_NAME_BYTES_MAX, by policy. */
static struct totals_currency *currency_get(struct totals *totals, struct slice name)
{
    uint32_t place = 0;

    if (name.size >= TOTALS_NAME_SIZE) /* Of a row that is damaged and can be read all the same. */
        name.size = TOTALS_NAME_SIZE - 1;
    while (place < totals->currency_count &&
           slice_compare(slice_from_text(totals->currencies[place].name), name) < 0)
        place++;
    struct totals_currency *at = &totals->currencies[place];
    if (place < totals->currency_count && slice_equal(slice_from_text(at->name), name))
        return at;
    if (totals->currency_count == TOTALS_CURRENCIES_MAX)
        return &totals->currencies[totals->currency_count - 1];
    memmove(at + 1, at, sizeof *at * (totals->currency_count - place));
    totals->currency_count++;
    *at = (struct totals_currency){ 0 };
    if (name.size > 0)
        memcpy(at->name, name.data, name.size);
    return at;
}

static void add_amount(struct totals *totals, struct slice currency, int64_t amount, int sign)
{
    struct totals_currency *at = currency_get(totals, currency);

    at->net = (int64_t)((uint64_t)at->net + (uint64_t)amount * (uint64_t)(int64_t)sign);
}

void totals_add(struct totals *to, const struct totals *from)
{
    for (uint32_t i = 0; i < from->currency_count; i++)
        add_amount(to, slice_from_text(from->currencies[i].name), from->currencies[i].net, 1);
    to->count += from->count;
    to->hashes += from->hashes;
    if (from->buckets == NULL)
        return;
    if (to->buckets == NULL)
        to->buckets = mem_zalloc(sizeof *to->buckets * TOTALS_BUCKETS);
    for (uint32_t i = 0; i < TOTALS_BUCKETS; i++) {
        to->buckets[i].count += from->buckets[i].count;
        to->buckets[i].hashes += from->buckets[i].hashes;
    }
}

static bool add_uid_text(struct totals *totals, struct slice text, int sign)
{
    uint8_t uid[ITEM_UID_BYTES];

    if (item_uid_parse(text, uid) != ERR_OK)
        return false;
    add_uid(totals, uid, sign);
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
    add_amount(totals, currency, amount, sign);
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
        add_amount(totals, player->balances[i].currency, owned(&player->balances[i]), sign);
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
            add_amount(totals, new.balances[same].currency, (int64_t)((uint64_t)is - (uint64_t)was),
                       1);
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

    add_amount(made->totals, currency, (int64_t)((uint64_t)amount + (uint64_t)reserved),
               -made->sign);
}

static void made_item(void *context, const uint8_t uid[ITEM_UID_BYTES], bool taken)
{
    const struct made *made = context;
    bool gone = made->kind == KIND(CONSUME) || (made->kind == KIND(REVERSAL) && taken);

    add_uid(made->totals, uid, gone ? made->sign : -made->sign);
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

bool totals_record(struct totals *totals, struct slice row, int sign)
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
    switch (key.data[0]) {
    case TABLE_MAIL:
        return add_mail(totals, row, sign);
    case TABLE_OUTBOX:
        return totals_record(totals, row, sign);
    case TABLE_INTENT:
        return add_intent(totals, row, sign);
    case TABLE_LEDGER:
        return add_entry(totals, row, sign);
    case TABLE_NOTE:
        return add_delta(totals, row, -sign);
    default:
        return true;
    }
}

bool totals_row(struct totals *totals, struct arena *arena, struct slice key, struct slice before,
                struct slice after)
{
    int items = (after.size > 0) - (before.size > 0);

    switch (key.data[0]) {
    case TABLE_ITEM:
        if (items != 0)
            add_uid(totals, key.data + key.size - ITEM_UID_BYTES, items);
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

bool totals_are_zero(const struct totals *totals)
{
    for (uint32_t i = 0; i < totals->currency_count; i++) {
        if (totals->currencies[i].net != 0)
            return false;
    }
    return totals->count == 0 && totals->hashes == 0;
}

void totals_encode_buckets(const struct totals *totals, struct buf *out)
{
    for (uint32_t i = 0; totals->buckets != NULL && i < TOTALS_BUCKETS; i++) {
        const struct totals_bucket *bucket = &totals->buckets[i];
        if (bucket->count == 0 && bucket->hashes == 0)
            continue;
        buf_put_u32(out, i);
        buf_put_u32(out, (uint32_t)bucket->count);
        buf_put_u64(out, bucket->hashes);
    }
}

void totals_encode(const struct totals *totals, struct buf *out)
{
    uint32_t filled = 0;

    buf_put_u32(out, totals->currency_count);
    for (uint32_t i = 0; i < totals->currency_count; i++) {
        buf_put_bytes(out, slice_from_text(totals->currencies[i].name));
        buf_put_u64(out, (uint64_t)totals->currencies[i].net);
    }
    for (uint32_t i = 0; totals->buckets != NULL && i < TOTALS_BUCKETS; i++)
        filled += totals->buckets[i].count != 0 || totals->buckets[i].hashes != 0;
    buf_put_u32(out, filled);
    if (filled > 0)
        totals_encode_buckets(totals, out);
}

static void read_currency(struct reader *reader, struct totals *totals)
{
    struct totals_currency *at = &totals->currencies[totals->currency_count];
    struct slice name = read_bytes(reader, TOTALS_NAME_SIZE - 1);

    *at = (struct totals_currency){ .net = (int64_t)read_u64(reader) };
    if (name.size > 0)
        memcpy(at->name, name.data, name.size);
    reader->bad |= strlen(at->name) != name.size ||
                   (totals->currency_count > 0 && strcmp(at[-1].name, at->name) >= 0);
    totals->currency_count++;
}

void totals_decode(struct reader *reader, struct totals *totals)
{
    uint32_t count = read_u32(reader);
    uint32_t next = 0;

    reader->bad |= count > TOTALS_CURRENCIES_MAX;
    for (uint32_t i = 0; i < count && !reader->bad; i++)
        read_currency(reader, totals);
    count = read_u32(reader);
    reader->bad |= count > TOTALS_BUCKETS;
    if (reader->bad || count == 0)
        return;
    totals->buckets = mem_zalloc(sizeof *totals->buckets * TOTALS_BUCKETS);
    for (uint32_t i = 0; i < count && !reader->bad; i++) {
        uint32_t place = read_u32(reader);
        struct totals_bucket bucket;
        bucket.count = (int32_t)read_u32(reader);
        bucket.hashes = read_u64(reader);
        reader->bad |=
            place < next || place >= TOTALS_BUCKETS || (bucket.count == 0 && bucket.hashes == 0);
        if (reader->bad)
            return;
        totals->buckets[place] = bucket;
        totals->count += bucket.count;
        totals->hashes += bucket.hashes;
        next = place + 1;
    }
}
