#include "node/core/totals.h"

#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/channel.pb-c.h"
#include "node/core/arena_proto.h"
#include "node/core/ledger.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"

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

    while (place < totals->currency_count &&
           slice_compare(slice_from_text(totals->currencies[place].name), name) < 0)
        place++;
    struct totals_currency *at = &totals->currencies[place];
    if (place < totals->currency_count && slice_equal(slice_from_text(at->name), name))
        return at;
    CHECK(name.size < TOTALS_NAME_SIZE);
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

static bool add_mail(struct totals *totals, const Holdfast__V1__Mail *mail, int sign)
{
    uint8_t uid[ITEM_UID_BYTES];

    if (mail == NULL)
        return false;
    for (size_t i = 0; i < mail->n_currencies; i++)
        add_amount(totals, slice_from_text(mail->currencies[i]->currency),
                   mail->currencies[i]->amount, sign);
    for (size_t i = 0; i < mail->n_items; i++) {
        if (item_uid_parse(slice_from_text(mail->items[i]->uid), uid) != ERR_OK)
            return false;
        add_uid(totals, uid, sign);
    }
    return true;
}

static bool add_player(struct totals *totals, struct slice row, struct arena *arena, int sign)
{
    struct player player;

    if (player_decode(row, (struct slice){ 0 }, arena, &player) != ERR_OK)
        return false;
    for (uint32_t i = 0; i < player.balance_count; i++)
        add_amount(totals, player.balances[i].currency,
                   player.balances[i].amount + player.balances[i].reserved, sign);
    return true;
}

/* Whether an entry of this kind makes or uses up what it tells of; else it only moves it. */
static bool makes(Holdfast__V1__LedgerKind kind)
{
    return kind == KIND(GRANT) || kind == KIND(SPEND) || kind == KIND(MINT) || kind == KIND(MAIL) ||
           kind == KIND(CONSUME) || kind == KIND(REVERSAL) || kind == KIND(POST);
}

/* What was made counts against what is held. */
static bool add_entry(struct totals *totals, struct slice row, struct arena *arena, int sign)
{
    Holdfast__V1__LedgerEntry *entry;
    Holdfast__V1__LedgerKind kind;
    uint8_t uid[ITEM_UID_BYTES];
    uint64_t at_ms;

    if (ledger_row_peek(row, &kind, &at_ms) != ERR_OK)
        return false;
    if (!makes(kind))
        return true;
    if (ledger_row_decode(row, arena, &entry) != ERR_OK)
        return false;
    bool taken = kind == KIND(CONSUME) || (kind == KIND(REVERSAL) && entry->items_taken);
    for (size_t i = 0; i < entry->n_changes; i++)
        add_amount(totals, slice_from_text(entry->changes[i]->currency),
                   entry->changes[i]->amount + entry->changes[i]->reserved, -sign);
    for (size_t i = 0; i < entry->n_items; i++) {
        if (item_uid_parse(slice_from_text(entry->items[i]->uid), uid) != ERR_OK)
            return false;
        add_uid(totals, uid, taken ? sign : -sign);
    }
    return true;
}

static bool add_row(struct totals *totals, struct slice key, struct slice row, int sign)
{
    struct arena arena = { 0 };
    bool good = true;

    if (row.size == 0)
        return true;
    switch (key.data[0]) {
    case TABLE_ITEM:
        add_uid(totals, key.data + key.size - ITEM_UID_BYTES, sign);
        break;
    case TABLE_PLAYER:
        good = add_player(totals, row, &arena, sign);
        break;
    case TABLE_MAIL:
        good = add_mail(totals,
                        (const Holdfast__V1__Mail *)(const void *)arena_unpack(
                            &arena, &holdfast__v1__mail__descriptor, row),
                        sign);
        break;
    case TABLE_OUTBOX: {
        const Holdfast__Internal__V1__OutboxRow *outbox = (const void *)arena_unpack(
            &arena, &holdfast__internal__v1__outbox_row__descriptor, row);
        good = outbox != NULL && add_mail(totals, outbox->credit->mail, sign);
        break;
    }
    case TABLE_LEDGER:
        good = add_entry(totals, row, &arena, sign);
        break;
    default:
        break;
    }
    arena_deinit(&arena);
    return good;
}

bool totals_row(struct totals *totals, struct slice key, struct slice before, struct slice after)
{
    bool old = add_row(totals, key, before, -1);
    bool new = add_row(totals, key, after, 1);

    return old && new;
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
    for (uint32_t i = 0; filled > 0 && i < TOTALS_BUCKETS; i++) {
        const struct totals_bucket *bucket = &totals->buckets[i];
        if (bucket->count == 0 && bucket->hashes == 0)
            continue;
        buf_put_u32(out, i);
        buf_put_u32(out, (uint32_t)bucket->count);
        buf_put_u64(out, bucket->hashes);
    }
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
