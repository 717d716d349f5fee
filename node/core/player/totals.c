#include "node/core/player/totals.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/hash.h"

void totals_deinit(struct totals *totals)
{
    free(totals->currencies);
    free(totals->buckets);
    *totals = (struct totals){ 0 };
}

static void note_filled(struct totals *totals, uint32_t place)
{
    const struct totals_bucket *bucket = &totals->buckets->each[place];
    uint64_t bit = 1ull << place % 64;

    if (bucket->count != 0 || bucket->hashes != 0)
        totals->buckets->filled[place / 64] |= bit;
    else
        totals->buckets->filled[place / 64] &= ~bit;
}

/* From `*place` on: the first bucket that is not zero, and its place; NULL: there is none. */
static const struct totals_bucket *next_filled(const struct totals *totals, uint32_t *place)
{
    for (uint32_t word = *place / 64; totals->buckets != NULL && word < TOTALS_BUCKETS / 64;
         word++) {
        uint64_t bits = totals->buckets->filled[word];
        if (word == *place / 64)
            bits &= ~0ull << *place % 64;
        if (bits == 0)
            continue;
        *place = word * 64 + (uint32_t)__builtin_ctzll(bits);
        return &totals->buckets->each[*place];
    }
    return NULL;
}

static void make_buckets(struct totals *totals)
{
    if (totals->buckets == NULL)
        totals->buckets = mem_zalloc(sizeof *totals->buckets);
}

static void make_currencies(struct totals *totals)
{
    if (totals->currencies == NULL)
        totals->currencies = mem_alloc(sizeof *totals->currencies * TOTALS_CURRENCIES_MAX);
}

static void copy_buckets(struct totals *to, const struct totals *from)
{
    const struct totals_bucket *bucket;

    for (uint32_t i = 0; next_filled(to, &i) != NULL; i++)
        to->buckets->each[i] = (struct totals_bucket){ 0 };
    if (from->buckets == NULL) {
        free(to->buckets);
        to->buckets = NULL;
        return;
    }
    make_buckets(to);
    memcpy(to->buckets->filled, from->buckets->filled, sizeof to->buckets->filled);
    for (uint32_t i = 0; (bucket = next_filled(from, &i)) != NULL; i++)
        to->buckets->each[i] = *bucket;
}

void totals_copy(struct totals *to, const struct totals *from)
{
    CHECK(to != from);
    copy_buckets(to, from);
    to->count = from->count;
    to->hashes = from->hashes;
    to->currency_count = from->currency_count;
    if (from->currency_count == 0)
        return;
    make_currencies(to);
    memcpy(to->currencies, from->currencies, sizeof *to->currencies * from->currency_count);
}

static uint64_t uid_hash(const uint8_t uid[ITEM_UID_BYTES])
{
    return hash_u64((struct slice){ uid, ITEM_UID_BYTES });
}

uint32_t totals_bucket_of(const uint8_t uid[ITEM_UID_BYTES])
{
    return (uint32_t)(uid_hash(uid) % TOTALS_BUCKETS);
}

void totals_add_uid(struct totals *totals, const uint8_t uid[ITEM_UID_BYTES], int sign)
{
    uint64_t hash = uid_hash(uid);
    uint32_t place = (uint32_t)(hash % TOTALS_BUCKETS);

    make_buckets(totals);
    struct totals_bucket *bucket = &totals->buckets->each[place];
    bucket->count += sign;
    bucket->hashes += sign > 0 ? hash : 0 - hash;
    note_filled(totals, place);
    totals->count += sign;
    totals->hashes += sign > 0 ? hash : 0 - hash;
}

/* A sum that came to zero keeps its place until another needs it. Which do depends on what was
 * tried and taken back, so it is not the same on all replicas. False: there is none. */
static bool drop_zeros(struct totals *totals)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < totals->currency_count; i++) {
        if (totals->currencies[i].net != 0)
            totals->currencies[kept++] = totals->currencies[i];
    }
    bool dropped = kept < totals->currency_count;
    totals->currency_count = kept;
    return dropped;
}

/* The last place takes what has no room: a sum over several currencies is still zero over all.
 * Names are at most CURRENCY_NAME_BYTES_MAX, by policy. */
static struct totals_currency *currency_get(struct totals *totals, struct slice name)
{
    uint32_t place = 0;

    if (name.size >= TOTALS_NAME_SIZE) /* Of a row that is damaged and can be read all the same. */
        name.size = TOTALS_NAME_SIZE - 1;
    make_currencies(totals);
    while (place < totals->currency_count &&
           slice_compare(slice_from_text(totals->currencies[place].name), name) < 0)
        place++;
    struct totals_currency *at = &totals->currencies[place];
    if (place < totals->currency_count && slice_equal(slice_from_text(at->name), name))
        return at;
    if (totals->currency_count == TOTALS_CURRENCIES_MAX)
        return drop_zeros(totals) ? currency_get(totals, name)
                                  : &totals->currencies[totals->currency_count - 1];
    memmove(at + 1, at, sizeof *at * (totals->currency_count - place));
    totals->currency_count++;
    *at = (struct totals_currency){ 0 };
    if (name.size > 0)
        memcpy(at->name, name.data, name.size);
    return at;
}

void totals_add_amount(struct totals *totals, struct slice currency, int64_t amount, int sign)
{
    struct totals_currency *at = currency_get(totals, currency);

    at->net = (int64_t)((uint64_t)at->net + (uint64_t)amount * (uint64_t)(int64_t)sign);
}

void totals_add(struct totals *to, const struct totals *from)
{
    for (uint32_t i = 0; i < from->currency_count; i++)
        totals_add_amount(to, slice_from_text(from->currencies[i].name), from->currencies[i].net,
                          1);
    to->count += from->count;
    to->hashes += from->hashes;
    const struct totals_bucket *bucket;
    for (uint32_t i = 0; (bucket = next_filled(from, &i)) != NULL; i++) {
        make_buckets(to);
        to->buckets->each[i].count += bucket->count;
        to->buckets->each[i].hashes += bucket->hashes;
        note_filled(to, i);
    }
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
    const struct totals_bucket *bucket;

    for (uint32_t i = 0; (bucket = next_filled(totals, &i)) != NULL; i++) {
        buf_put_u32(out, i);
        buf_put_u32(out, (uint32_t)bucket->count);
        buf_put_u64(out, bucket->hashes);
    }
}

void totals_encode(const struct totals *totals, struct buf *out)
{
    uint32_t filled = 0, sums = 0;

    for (uint32_t i = 0; i < totals->currency_count; i++)
        sums += totals->currencies[i].net != 0;
    buf_put_u32(out, sums);
    for (uint32_t i = 0; i < totals->currency_count; i++) {
        if (totals->currencies[i].net == 0)
            continue;
        buf_put_bytes(out, slice_from_text(totals->currencies[i].name));
        buf_put_u64(out, (uint64_t)totals->currencies[i].net);
    }
    for (uint32_t i = 0; totals->buckets != NULL && i < TOTALS_BUCKETS / 64; i++)
        filled += (uint32_t)__builtin_popcountll(totals->buckets->filled[i]);
    buf_put_u32(out, filled);
    totals_encode_buckets(totals, out);
}

static void read_currency(struct reader *reader, struct totals *totals)
{
    make_currencies(totals);
    struct totals_currency *at = &totals->currencies[totals->currency_count];
    struct slice name = read_bytes(reader, TOTALS_NAME_SIZE - 1);

    *at = (struct totals_currency){ .net = (int64_t)read_u64(reader) };
    if (name.size > 0)
        memcpy(at->name, name.data, name.size);
    reader->bad |= strlen(at->name) != name.size ||
                   (totals->currency_count > 0 && strcmp(at[-1].name, at->name) >= 0);
    totals->currency_count += at->net != 0; /* Earlier programs wrote sums of nothing, too. */
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
    make_buckets(totals);
    for (uint32_t i = 0; i < count && !reader->bad; i++) {
        uint32_t place = read_u32(reader);
        struct totals_bucket bucket;
        bucket.count = (int32_t)read_u32(reader);
        bucket.hashes = read_u64(reader);
        reader->bad |=
            place < next || place >= TOTALS_BUCKETS || (bucket.count == 0 && bucket.hashes == 0);
        if (reader->bad)
            return;
        totals->buckets->each[place] = bucket;
        note_filled(totals, place);
        totals->count += bucket.count;
        totals->hashes += bucket.hashes;
        next = place + 1;
    }
}
