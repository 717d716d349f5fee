#include "node/core/rep_message.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

#define MESSAGE_VERSION     1u
#define MESSAGE_ENTRIES_MAX 4096u /* The greatest append_entries_max allows no more. */

enum { FLAG_REFUSED = 1u, FLAG_VECTOR = 2u, FLAG_VOTES = 4u, FLAGS_ALL = 7u };

static void hash_encode(struct hash128 hash, struct buf *out)
{
    buf_append(out, hash.bytes, sizeof hash.bytes);
}

static struct hash128 hash_decode(struct reader *reader)
{
    struct hash128 hash = { { 0 } };
    struct slice bytes = read_raw(reader, sizeof hash.bytes);

    if (bytes.size == sizeof hash.bytes)
        memcpy(hash.bytes, bytes.data, sizeof hash.bytes);
    return hash;
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
    return (uint8_t)flags;
}

void rep_message_encode(const struct rep_message *message, struct buf *out)
{
    uint8_t flags = flags_of(message);

    CHECK(message->entry_count <= MESSAGE_ENTRIES_MAX);
    buf_put_u8(out, MESSAGE_VERSION);
    buf_put_u8(out, (uint8_t)message->type);
    buf_put_u8(out, flags);
    buf_put_u32(out, message->shard);
    buf_put_u64(out, message->generation);
    buf_put_u64(out, message->config);
    buf_put_u64(out, message->epoch);
    buf_put_u64(out, message->owner);
    buf_put_u64(out, message->cut_id);
    buf_put_u64(out, message->prev_index);
    hash_encode(message->prev_hash, out);
    buf_put_u64(out, message->commit_index);
    buf_put_u64(out, message->retain_index);
    buf_put_u64(out, message->round);
    buf_put_u64(out, message->matched_index);
    buf_put_u64(out, message->applied_index);
    hash_encode(message->outcome, out);
    buf_put_u64(out, message->last_dot.epoch);
    buf_put_u64(out, message->last_dot.owner);
    buf_put_u64(out, message->last_dot.counter);
    buf_put_u32(out, message->apply_version);
    if (flags & FLAG_VECTOR)
        vector_encode(&message->vector, out);
    buf_put_u32(out, message->entry_count);
    for (uint32_t i = 0; i < message->entry_count; i++)
        buf_put_bytes(out, message->entries[i]->encoded);
}

static err header_decode(struct reader *reader, struct rep_message *m)
{
    uint8_t version = read_u8(reader);
    uint8_t type = read_u8(reader);
    uint8_t flags = read_u8(reader);

    if (reader->bad || version != MESSAGE_VERSION || (flags & ~FLAGS_ALL) != 0)
        return ERR_CORRUPT;
    if (type < REP_MSG_APPEND || type > REP_MSG_FETCH_ACK)
        return ERR_CORRUPT;
    m->type = (enum rep_message_type)type;
    m->refused = (flags & FLAG_REFUSED) != 0;
    m->votes = (flags & FLAG_VOTES) != 0;
    m->shard = read_u32(reader);
    m->generation = read_u64(reader);
    m->config = read_u64(reader);
    m->epoch = read_u64(reader);
    m->owner = read_u64(reader);
    m->cut_id = read_u64(reader);
    m->prev_index = read_u64(reader);
    m->prev_hash = hash_decode(reader);
    m->commit_index = read_u64(reader);
    m->retain_index = read_u64(reader);
    m->round = read_u64(reader);
    m->matched_index = read_u64(reader);
    m->applied_index = read_u64(reader);
    m->outcome = hash_decode(reader);
    m->last_dot.epoch = read_u64(reader);
    m->last_dot.owner = read_u64(reader);
    m->last_dot.counter = read_u64(reader);
    m->apply_version = read_u32(reader);
    if (flags & FLAG_VECTOR)
        return vector_decode(reader, &m->vector);
    return reader->bad ? ERR_CORRUPT : ERR_OK;
}

static err entries_decode(struct reader *reader, struct rep_message *m)
{
    uint32_t count = read_u32(reader);

    if (reader->bad || count > MESSAGE_ENTRIES_MAX)
        return ERR_CORRUPT;
    if (count == 0)
        return ERR_OK;
    m->entries = mem_zalloc(count * sizeof m->entries[0]);
    for (; m->entry_count < count; m->entry_count++) {
        struct slice bytes = read_bytes(reader, ENTRY_BODY_BYTES_MAX + 1024u);
        if (reader->bad)
            return ERR_CORRUPT;
        err e = entry_decode(bytes, &m->entries[m->entry_count]);
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

err rep_message_decode(struct slice bytes, struct rep_message *ret_message)
{
    struct reader reader = reader_from(bytes);
    struct rep_message message = { 0 };
    err e = header_decode(&reader, &message);

    if (e == ERR_OK)
        e = entries_decode(&reader, &message);
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
}

err rep_message_peek_shard(struct slice bytes, uint32_t *ret_shard)
{
    struct reader reader = reader_from(bytes);

    (void)read_u8(&reader); /* Version, */
    (void)read_u8(&reader); /* type, */
    (void)read_u8(&reader); /* flags. */
    *ret_shard = read_u32(&reader);
    return reader.bad ? ERR_CORRUPT : ERR_OK;
}
