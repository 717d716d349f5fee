#include "node/core/mergeable/token.h"

#include <string.h>

#include "runtime/base/check.h"

#define FORMAT 2u

static struct hash128 record_hash(const struct merge_place *place)
{
    struct buf bytes = { 0 };

    buf_put_u64(&bytes, place->shard);
    merge_key_encode(place->key, &bytes);
    struct hash128 hash = hash_u128(buf_slice(&bytes));

    buf_deinit(&bytes);
    return hash;
}

/* The mac is over the whole key, not over its hash, which is not made against forgers. */
static void mac_of(const struct merge_mac *mac, const struct merge_place *place, struct slice body,
                   uint8_t ret_mac[MERGE_TOKEN_MAC_BYTES])
{
    struct buf message = { 0 };

    buf_put_u64(&message, place->shard);
    merge_key_encode(place->key, &message);
    buf_append(&message, body.data, body.size);
    mac->sign(mac->user, buf_slice(&message), ret_mac);
    buf_deinit(&message);
}

void merge_token_seal(const struct merge_mac *mac, const struct merge_place *place,
                      const struct merge_token *token, struct buf *out)
{
    struct hash128 hash = record_hash(place);
    uint8_t made[MERGE_TOKEN_MAC_BYTES];
    size_t begin = out->size;

    CHECK(token->count <= MERGE_TOKEN_ENTRIES_MAX && token->own_count <= MERGE_TOKEN_OWN_MAX);
    buf_put_u8(out, FORMAT);
    buf_put_u64(out, place->generation);
    buf_put_compact(out, place->erasure);
    buf_append(out, hash.bytes, sizeof hash.bytes);
    buf_put_u64(out, token->hlc);
    buf_put_u8(out, (uint8_t)token->count);
    for (uint32_t i = 0; i < token->count; i++) {
        buf_put_u64(out, token->entries[i].actor);
        buf_put_compact(out, token->entries[i].upto);
    }
    buf_put_u8(out, (uint8_t)token->own_count);
    for (uint32_t i = 0; i < token->own_count; i++) {
        buf_put_u64(out, token->own[i].actor);
        buf_put_compact(out, token->own[i].counter);
    }
    mac_of(mac, place, (struct slice){ out->data + begin, out->size - begin }, made);
    buf_append(out, made, sizeof made);
    CHECK(out->size - begin <= MERGE_TOKEN_BYTES_MAX);
}

static bool is_equal(const uint8_t *a, const uint8_t *b)
{
    volatile uint8_t differs = 0; /* In the same time wherever they differ. */

    for (size_t i = 0; i < MERGE_TOKEN_MAC_BYTES; i++)
        differs = (uint8_t)(differs | (a[i] ^ b[i]));
    return differs == 0;
}

static bool entries_read(struct reader *reader, struct merge_token *token)
{
    token->count = read_u8(reader);
    if (reader->bad || token->count > MERGE_TOKEN_ENTRIES_MAX)
        return false;
    for (uint32_t i = 0; i < token->count; i++) {
        struct causal_entry *entry = &token->entries[i];

        *entry = (struct causal_entry){ .actor = read_u64(reader), .upto = read_compact(reader) };
        if (reader->bad || entry->actor == 0 || entry->upto == 0 ||
            entry->upto > MCLOCK_COUNTER_MAX || (i > 0 && entry->actor <= entry[-1].actor))
            return false;
    }
    return true;
}

static bool own_read(struct reader *reader, struct merge_token *token)
{
    token->own_count = read_u8(reader);
    if (reader->bad || token->own_count > MERGE_TOKEN_OWN_MAX)
        return false;
    for (uint32_t i = 0; i < token->own_count; i++) {
        struct merge_dot *dot = &token->own[i];

        *dot = (struct merge_dot){ .actor = read_u64(reader), .counter = read_compact(reader) };
        if (reader->bad || dot->actor == 0 || dot->counter == 0 ||
            dot->counter > MCLOCK_COUNTER_MAX)
            return false;
    }
    return reader_finish(reader) == ERR_OK;
}

err merge_token_open(const struct merge_mac *mac, const struct merge_place *place,
                     struct slice bytes, struct merge_token *ret_token)
{
    uint8_t made[MERGE_TOKEN_MAC_BYTES];
    struct merge_token token = { 0 };

    if (bytes.size > MERGE_TOKEN_BYTES_MAX || bytes.size <= MERGE_TOKEN_MAC_BYTES)
        return ERR_INVALID;
    struct slice body = { bytes.data, bytes.size - MERGE_TOKEN_MAC_BYTES };

    /* Before the mac: a restored cluster has another key. */
    if (body.size > 1 + sizeof(uint64_t) && body.data[0] == FORMAT &&
        load_u64(body.data + 1) != place->generation)
        return ERR_STALE_EPOCH;
    mac_of(mac, place, body, made);
    if (!is_equal(made, bytes.data + body.size))
        return ERR_INVALID;
    struct reader reader = reader_from(body);
    uint8_t format = read_u8(&reader);
    (void)read_u64(&reader); /* The generation, which was looked at. */
    uint64_t erasure = read_compact(&reader);
    struct slice hash = read_raw(&reader, sizeof(struct hash128));
    struct hash128 wanted = record_hash(place);

    token.hlc = read_u64(&reader);
    if (reader.bad || format != FORMAT || memcmp(hash.data, wanted.bytes, hash.size) != 0 ||
        !entries_read(&reader, &token) || !own_read(&reader, &token))
        return ERR_INVALID;
    if (erasure < place->erasure)
        return ERR_STALE_EPOCH;
    if (erasure > place->erasure)
        return ERR_UNAVAILABLE;
    *ret_token = token;
    return ERR_OK;
}
