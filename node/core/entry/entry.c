#include "node/core/entry/entry.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

/*
 * version u8, kind u8, zero u16, body size u32, index, epoch, owner, counter, owner_ms: u64 each;
 * prev_hash 16, hash 16; body. The hash covers prev_hash, the first 48 bytes and the body.
 */
#define ENTRY_VERSION      1u
#define ENTRY_HASHED_BYTES 48u
#define ENTRY_HEADER_BYTES 80u

void dot_encode(struct dot dot, struct buf *out)
{
    buf_put_u64(out, dot.epoch);
    buf_put_u64(out, dot.owner);
    buf_put_u64(out, dot.counter);
}

struct dot dot_decode(struct reader *reader)
{
    struct dot dot;

    dot.epoch = read_u64(reader);
    dot.owner = read_u64(reader);
    dot.counter = read_u64(reader);
    return dot;
}

int dot_compare(struct dot a, struct dot b)
{
    if (a.epoch != b.epoch)
        return a.epoch < b.epoch ? -1 : 1;
    return (a.counter > b.counter) - (a.counter < b.counter);
}

static struct entry *entry_alloc(size_t body_bytes)
{
    struct entry *entry = mem_alloc(sizeof *entry + ENTRY_HEADER_BYTES + body_bytes);

    *entry = (struct entry){ .refs = 1 };
    entry->encoded = (struct slice){ entry->bytes, ENTRY_HEADER_BYTES + body_bytes };
    entry->body = (struct slice){ entry->bytes + ENTRY_HEADER_BYTES, body_bytes };
    return entry;
}

static struct hash128 entry_hash(const struct entry *entry)
{
    struct slice header = { entry->bytes, ENTRY_HASHED_BYTES };

    return hash_chain(entry->prev_hash, header, entry->body);
}

struct entry *entry_new(enum entry_kind kind, const struct entry_head *head, struct slice body)
{
    CHECK(body.size <= ENTRY_BODY_BYTES_MAX);
    CHECK(head->index > 0 && head->dot.epoch > 0 && head->dot.counter > 0);

    struct entry *entry = entry_alloc(body.size);
    uint8_t *p = entry->bytes;

    entry->kind = kind;
    entry->index = head->index;
    entry->dot = head->dot;
    entry->owner_ms = head->owner_ms;
    entry->prev_hash = head->prev_hash;
    memset(p, 0, ENTRY_HEADER_BYTES);
    p[0] = ENTRY_VERSION;
    p[1] = (uint8_t)kind;
    store_u32(p + 4, (uint32_t)body.size);
    store_u64(p + 8, head->index);
    store_u64(p + 16, head->dot.epoch);
    store_u64(p + 24, head->dot.owner);
    store_u64(p + 32, head->dot.counter);
    store_u64(p + 40, head->owner_ms);
    if (body.size > 0)
        memcpy(p + ENTRY_HEADER_BYTES, body.data, body.size);
    entry->hash = entry_hash(entry);
    memcpy(p + 48, entry->prev_hash.bytes, sizeof entry->prev_hash.bytes);
    memcpy(p + 64, entry->hash.bytes, sizeof entry->hash.bytes);
    return entry;
}

struct entry *entry_ref(struct entry *entry)
{
    CHECK(entry->refs > 0 && entry->refs < UINT32_MAX);
    entry->refs++;
    return entry;
}

void entry_unref(struct entry *entry)
{
    if (entry == NULL)
        return;
    CHECK(entry->refs > 0);
    if (--entry->refs == 0)
        free(entry);
}

static bool header_valid(struct slice bytes)
{
    const uint8_t *p = bytes.data;

    if (bytes.size < ENTRY_HEADER_BYTES || p[0] != ENTRY_VERSION || p[2] != 0 || p[3] != 0)
        return false;
    if (p[1] < ENTRY_START || p[1] > ENTRY_CUT)
        return false;
    if (load_u32(p + 4) > ENTRY_BODY_BYTES_MAX)
        return false;
    if (load_u32(p + 4) != bytes.size - ENTRY_HEADER_BYTES)
        return false;
    return load_u64(p + 8) > 0 && load_u64(p + 16) > 0 && load_u64(p + 32) > 0;
}

err entry_decode(struct slice bytes, struct entry **ret_entry)
{
    if (!header_valid(bytes))
        return ERR_CORRUPT;

    struct entry *entry = entry_alloc(bytes.size - ENTRY_HEADER_BYTES);
    const uint8_t *p = entry->bytes;

    memcpy(entry->bytes, bytes.data, bytes.size);
    entry->kind = (enum entry_kind)p[1];
    entry->index = load_u64(p + 8);
    entry->dot.epoch = load_u64(p + 16);
    entry->dot.owner = load_u64(p + 24);
    entry->dot.counter = load_u64(p + 32);
    entry->owner_ms = load_u64(p + 40);
    memcpy(entry->prev_hash.bytes, p + 48, sizeof entry->prev_hash.bytes);
    memcpy(entry->hash.bytes, p + 64, sizeof entry->hash.bytes);
    if (!hash128_equal(entry->hash, entry_hash(entry))) {
        entry_unref(entry);
        return ERR_CORRUPT;
    }
    *ret_entry = entry;
    return ERR_OK;
}

struct entry_place entry_place(const struct entry *entry)
{
    return (struct entry_place){ entry->index, entry->dot, entry->owner_ms, entry->hash };
}

static bool follows(const struct entry *entry, const struct entry_place *before)
{
    return entry->index == before->index + 1 && entry->dot.epoch == before->dot.epoch &&
           entry->dot.owner == before->dot.owner && entry->dot.counter == before->dot.counter + 1 &&
           entry->owner_ms >= before->owner_ms && hash128_equal(entry->prev_hash, before->hash);
}

/* Kind u8, milliseconds since the one before, hash 16, body size, body; or zero u8, size, all. */
void entry_encode_after(const struct entry *entry, const struct entry_place *before,
                        struct buf *out)
{
    if (!follows(entry, before)) {
        buf_put_u8(out, 0);
        buf_put_compact(out, entry->encoded.size);
        buf_append(out, entry->encoded.data, entry->encoded.size);
        return;
    }
    buf_put_u8(out, (uint8_t)entry->kind);
    buf_put_compact(out, entry->owner_ms - before->owner_ms);
    buf_append(out, entry->hash.bytes, sizeof entry->hash.bytes);
    buf_put_compact(out, entry->body.size);
    buf_append(out, entry->body.data, entry->body.size);
}

static err decode_whole(struct reader *reader, const struct entry_place *before,
                        struct entry **ret_entry)
{
    struct entry *entry;
    uint64_t size = read_compact(reader);
    err e = entry_decode(read_raw(reader, size), &entry);

    if (e != ERR_OK)
        return e;
    if (follows(entry, before)) { /* One form for each. */
        entry_unref(entry);
        return ERR_CORRUPT;
    }
    *ret_entry = entry;
    return ERR_OK;
}

err entry_decode_after(struct reader *reader, const struct entry_place *before,
                       struct entry **ret_entry)
{
    uint8_t kind = read_u8(reader);

    if (reader->bad)
        return ERR_CORRUPT;
    if (kind == 0)
        return decode_whole(reader, before, ret_entry);
    uint64_t owner_ms = before->owner_ms + read_compact(reader);
    struct slice hash = read_raw(reader, sizeof before->hash.bytes);
    uint64_t body_bytes = read_compact(reader);
    struct slice body = read_raw(reader, body_bytes);
    struct dot dot = before->dot;

    dot.counter++;
    if (reader->bad || kind > ENTRY_CUT || body.size > ENTRY_BODY_BYTES_MAX)
        return ERR_CORRUPT;
    if (owner_ms < before->owner_ms || before->index == UINT64_MAX || dot.epoch == 0 ||
        dot.counter == 0)
        return ERR_CORRUPT;
    struct entry_head head = { before->index + 1, dot, owner_ms, before->hash };
    struct entry *entry = entry_new((enum entry_kind)kind, &head, body);
    if (memcmp(entry->hash.bytes, hash.data, sizeof entry->hash.bytes) != 0) {
        entry_unref(entry);
        return ERR_CORRUPT;
    }
    *ret_entry = entry;
    return ERR_OK;
}
