#include "node/core/replication/rep_message.h"

#include <stdlib.h>

#include "runtime/base/check.h"

/* Most numbers are small or absent, and every byte is encrypted and decrypted: compact. */
#define MESSAGE_VERSION     2u
#define MESSAGE_ENTRIES_MAX 4096u /* The greatest append_entries_max allows no more. */

enum {
    FLAG_REFUSED = 1u,
    FLAG_VECTOR = 2u,
    FLAG_VOTES = 4u,
    FLAG_PREV_HASH = 8u,
    FLAG_OUTCOME = 16u,
    FLAG_LAST_DOT = 32u,
    FLAG_BEHIND = 64u,
    FLAG_LAST = 128u /* Of *_ACK: `quarantined`. */
};

static bool is_ack(const struct rep_message *message)
{
    return message->type == REP_MSG_APPEND_ACK || message->type == REP_MSG_SEAL_ACK ||
           message->type == REP_MSG_FETCH_ACK;
}

static bool hash_is_zero(struct hash128 hash)
{
    static const struct hash128 zero = { { 0 } };
    return hash128_equal(hash, zero);
}

static bool dot_is_zero(struct dot dot)
{
    return dot.epoch == 0 && dot.owner == 0 && dot.counter == 0;
}

static uint8_t flags_of(const struct rep_message *message)
{
    unsigned flags = 0;

    if (message->refused)
        flags |= FLAG_REFUSED;
    if (message->votes)
        flags |= FLAG_VOTES;
    if (message->vector.count > 0 || message->vector.folded_index > 0)
        flags |= FLAG_VECTOR;
    if (!hash_is_zero(message->prev_hash))
        flags |= FLAG_PREV_HASH;
    if (!hash_is_zero(message->outcome))
        flags |= FLAG_OUTCOME;
    if (!dot_is_zero(message->last_dot))
        flags |= FLAG_LAST_DOT;
    if (message->behind)
        flags |= FLAG_BEHIND;
    if (is_ack(message) ? message->quarantined : message->last)
        flags |= FLAG_LAST;
    return (uint8_t)flags;
}

/* What the first entry most likely follows. */
static struct entry_place place_before(const struct rep_message *message, uint64_t counter)
{
    return (struct entry_place){ .index = message->prev_index,
                                 .dot = { message->epoch, message->owner, counter - 1 },
                                 .hash = message->prev_hash };
}

static void entries_encode(const struct rep_message *message, struct buf *out)
{
    CHECK(message->entry_count <= MESSAGE_ENTRIES_MAX);
    buf_put_compact(out, message->entry_count);
    if (message->entry_count == 0)
        return;
    uint64_t counter = message->entries[0]->dot.counter;
    struct entry_place place = place_before(message, counter);
    buf_put_compact(out, counter);
    for (uint32_t i = 0; i < message->entry_count; i++) {
        entry_encode_after(message->entries[i], &place, out);
        place = entry_place(message->entries[i]);
    }
}

static bool is_snapshot(const struct rep_message *message)
{
    return message->type >= REP_MSG_SNAPSHOT_PULL;
}

static void snapshot_encode(const struct rep_message *message, struct buf *out)
{
    buf_put_u64(out, message->snapshot);
    buf_put_u32(out, message->part);
    buf_put_hash(out, message->chain);
    buf_put_bytes(out, buf_slice(&message->body));
}

void rep_message_encode(const struct rep_message *message, struct buf *out)
{
    uint8_t flags = flags_of(message);

    buf_put_u8(out, MESSAGE_VERSION);
    buf_put_u8(out, (uint8_t)message->type);
    buf_put_u8(out, flags);
    buf_put_compact(out, message->shard);
    buf_put_compact(out, message->generation);
    buf_put_compact(out, message->config);
    buf_put_compact(out, message->epoch);
    buf_put_compact(out, message->owner);
    buf_put_compact(out, message->cut_id);
    buf_put_compact(out, message->prev_index);
    if (flags & FLAG_PREV_HASH)
        buf_put_hash(out, message->prev_hash);
    buf_put_compact(out, message->commit_index);
    buf_put_compact(out, message->retain_index);
    buf_put_compact(out, message->round);
    buf_put_compact(out,
                    message->type == REP_MSG_APPEND ? message->unix_ms : message->matched_index);
    buf_put_compact(out, message->applied_index);
    if (flags & FLAG_OUTCOME)
        buf_put_hash(out, message->outcome);
    if (flags & FLAG_LAST_DOT) {
        buf_put_compact(out, message->last_dot.epoch);
        buf_put_compact(out, message->last_dot.owner);
        buf_put_compact(out, message->last_dot.counter);
    }
    buf_put_compact(out, message->apply_version);
    if (flags & FLAG_VECTOR)
        vector_encode(&message->vector, out);
    entries_encode(message, out);
    if (is_snapshot(message))
        snapshot_encode(message, out);
}

static uint32_t u32_decode(struct reader *reader)
{
    uint64_t number = read_compact(reader);

    reader->bad |= number > UINT32_MAX;
    return (uint32_t)number;
}

static void numbers_decode(struct reader *reader, uint8_t flags, struct rep_message *m)
{
    m->shard = u32_decode(reader);
    m->generation = read_compact(reader);
    m->config = read_compact(reader);
    m->epoch = read_compact(reader);
    m->owner = read_compact(reader);
    m->cut_id = read_compact(reader);
    m->prev_index = read_compact(reader);
    if (flags & FLAG_PREV_HASH)
        m->prev_hash = read_hash(reader);
    m->commit_index = read_compact(reader);
    m->retain_index = read_compact(reader);
    m->round = read_compact(reader);
    *(m->type == REP_MSG_APPEND ? &m->unix_ms : &m->matched_index) = read_compact(reader);
    m->applied_index = read_compact(reader);
    if (flags & FLAG_OUTCOME)
        m->outcome = read_hash(reader);
    if (flags & FLAG_LAST_DOT) {
        m->last_dot.epoch = read_compact(reader);
        m->last_dot.owner = read_compact(reader);
        m->last_dot.counter = read_compact(reader);
    }
    m->apply_version = u32_decode(reader);
}

static err header_decode(struct reader *reader, struct rep_message *m)
{
    uint8_t version = read_u8(reader);
    uint8_t type = read_u8(reader);
    uint8_t flags = read_u8(reader);

    if (reader->bad || version != MESSAGE_VERSION)
        return ERR_CORRUPT;
    if (type < REP_MSG_APPEND || type > REP_MSG_SNAPSHOT_PART)
        return ERR_CORRUPT;
    m->type = (enum rep_message_type)type;
    m->refused = (flags & FLAG_REFUSED) != 0;
    m->votes = (flags & FLAG_VOTES) != 0;
    m->behind = (flags & FLAG_BEHIND) != 0;
    bool *last = is_ack(m) ? &m->quarantined : &m->last;
    *last = (flags & FLAG_LAST) != 0;
    numbers_decode(reader, flags, m);
    if (flags & FLAG_VECTOR) {
        err e = vector_decode(reader, &m->vector);
        if (e != ERR_OK)
            return e;
    }
    /* One form for each message: what is absent has no flag. */
    return reader->bad || flags_of(m) != flags ? ERR_CORRUPT : ERR_OK;
}

static err entries_decode(struct reader *reader, struct rep_message *m)
{
    uint64_t count = read_compact(reader);

    if (reader->bad || count > MESSAGE_ENTRIES_MAX)
        return ERR_CORRUPT;
    if (count == 0)
        return ERR_OK;
    uint64_t counter = read_compact(reader);
    struct entry_place place = place_before(m, counter);
    if (reader->bad || counter == 0)
        return ERR_CORRUPT;
    m->entries = mem_zalloc(count * sizeof m->entries[0]);
    for (; m->entry_count < count; m->entry_count++) {
        struct entry **entry = &m->entries[m->entry_count];
        err e = entry_decode_after(reader, &place, entry);
        if (e != ERR_OK)
            return e;
        place = entry_place(*entry);
    }
    return m->entries[0]->dot.counter == counter ? ERR_OK : ERR_CORRUPT;
}

static void snapshot_decode(struct reader *reader, struct rep_message *m)
{
    m->snapshot = read_u64(reader);
    m->part = read_u32(reader);
    m->chain = read_hash(reader);
    struct slice body = read_bytes(reader, REP_BODY_BYTES_MAX);
    if (!reader->bad && body.size > 0)
        buf_append(&m->body, body.data, body.size);
}

err rep_message_decode(struct slice bytes, struct rep_message *ret_message)
{
    struct reader reader = reader_from(bytes);
    struct rep_message message = { 0 };
    err e = header_decode(&reader, &message);

    if (e == ERR_OK)
        e = entries_decode(&reader, &message);
    if (e == ERR_OK && is_snapshot(&message))
        snapshot_decode(&reader, &message);
    if (e == ERR_OK)
        e = reader_finish(&reader);
    if (e != ERR_OK) {
        rep_message_deinit(&message);
        return e;
    }
    *ret_message = message;
    return ERR_OK;
}

void rep_message_deinit(struct rep_message *message)
{
    for (uint32_t i = 0; i < message->entry_count; i++)
        entry_unref(message->entries[i]);
    free(message->entries);
    message->entries = NULL;
    message->entry_count = 0;
    buf_deinit(&message->body);
}

err rep_message_peek_shard(struct slice bytes, uint32_t *ret_shard)
{
    struct reader reader = reader_from(bytes);

    (void)read_u8(&reader); /* Version, */
    (void)read_u8(&reader); /* type, */
    (void)read_u8(&reader); /* flags. */
    *ret_shard = u32_decode(&reader);
    return reader.bad ? ERR_CORRUPT : ERR_OK;
}
