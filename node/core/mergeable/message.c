#include "node/core/mergeable/message.h"

#include "runtime/base/check.h"

#define HEAD_BYTES 49u

struct buf *merge_message_begin(struct merge_replica *replica, enum merge_kind kind, uint64_t to,
                                uint64_t after_log)
{
    struct buf *out = merge_out_message(replica, to, after_log);

    buf_put_u8(out, (uint8_t)kind);
    buf_put_u64(out, replica->options.generation);
    buf_put_u64(out, replica->options.shard);
    buf_put_u64(out, replica->options.member);
    buf_put_u64(out, replica->options.boot);
    buf_put_u64(out, replica->actor);
    buf_put_u64(out, replica->members.membership.config);
    return out;
}

void merge_message_stamp(struct buf *message, uint64_t now_ms)
{
    if (message->size >= HEAD_BYTES + 8 && message->data[0] == MERGE_REPORT)
        store_u64(message->data + HEAD_BYTES, now_ms);
}

err merge_head_decode(struct reader *reader, struct merge_head *ret_head)
{
    uint8_t kind = read_u8(reader);
    struct merge_head head = { .kind = (enum merge_kind)kind };

    head.generation = read_u64(reader);
    head.shard = read_u64(reader);
    head.from = read_u64(reader);
    head.boot = read_u64(reader);
    head.actor = read_u64(reader);
    head.config = read_u64(reader);
    if (reader->bad || kind == 0 || kind >= MERGE_KIND_END || head.actor == 0 || head.boot == 0)
        return ERR_CORRUPT;
    *ret_head = head;
    return ERR_OK;
}

err merge_step_decode(struct slice message, struct merge_step *ret_step)
{
    struct reader reader = reader_from(message);
    struct merge_head head;

    if (merge_head_decode(&reader, &head) != ERR_OK ||
        (head.kind != MERGE_PULL && head.kind != MERGE_CHUNK))
        return ERR_NOT_FOUND;
    uint64_t boot = read_u64(&reader), id = read_u64(&reader); /* Of a pull: whom it asks. */

    if (reader.bad)
        return ERR_NOT_FOUND;
    *ret_step = (struct merge_step){ .shard = head.shard,
                                     .boot = head.kind == MERGE_PULL ? head.boot : boot,
                                     .id = id };
    return ERR_OK;
}

void merge_dot_encode(struct merge_dot dot, struct buf *out)
{
    buf_put_u64(out, dot.actor);
    buf_put_u64(out, dot.counter);
}

err merge_dot_decode(struct reader *reader, struct merge_dot *ret_dot)
{
    struct merge_dot dot = { .actor = read_u64(reader), .counter = read_u64(reader) };

    if (reader->bad || dot.actor == 0 || dot.counter == 0 || dot.counter > MCLOCK_COUNTER_MAX)
        return ERR_CORRUPT;
    *ret_dot = dot;
    return ERR_OK;
}

void merge_record_full(const struct merge_replica *replica, const struct merge_key *key,
                       struct merge_record *ret_record)
{
    const struct merge_record *stored = merge_store_find(&replica->store, key);
    struct merge_record record = { 0 };

    if (stored != NULL)
        merge_record_copy(&record, stored);
    else
        record.erasure = merge_store_erasure(&replica->store, merge_key_entity(key));
    causal_fill(&record.context, &replica->clock);
    *ret_record = record;
}

void merge_send_write(struct merge_replica *replica, struct merge_key *key, struct merge_dot dot,
                      bool wants_ack)
{
    struct merge_record record;
    struct buf body = { 0 };

    merge_record_full(replica, key, &record);
    merge_dot_encode(dot, &body);
    buf_put_u8(&body, wants_ack);
    merge_key_encode(key, &body);
    merge_record_encode(&record, &body);
    for (uint32_t i = 0; i < replica->peer_count; i++) {
        struct buf *out = merge_message_begin(replica, MERGE_WRITE, replica->peers[i].member, 0);

        buf_append(out, body.data, body.size);
    }
    buf_deinit(&body);
    merge_record_deinit(&record);
}

void merge_send_ask(struct merge_replica *replica, const struct merge_key *key, uint64_t id)
{
    for (uint32_t i = 0; i < replica->peer_count; i++) {
        if (!merge_is_member(replica, replica->peers[i].member))
            continue;
        struct buf *out = merge_message_begin(replica, MERGE_ASK, replica->peers[i].member, 0);

        buf_put_u64(out, id);
        merge_key_encode(key, out);
    }
}
