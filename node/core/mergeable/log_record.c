#include "node/core/mergeable/log_record.h"

#include "node/core/mergeable/message.h"

static void append(struct merge_replica *replica, struct buf *record)
{
    merge_out_log(replica, buf_slice(record));
    buf_deinit(record);
}

void merge_log_record(struct merge_replica *replica, const struct merge_incoming *incoming)
{
    struct buf out = { 0 };

    buf_put_u8(&out, MERGE_LOG_RECORD);
    merge_key_encode(incoming->key, &out);
    merge_record_encode(incoming->record, &out);
    buf_put_compact(&out, incoming->dot_count);
    for (uint32_t i = 0; i < incoming->dot_count; i++)
        merge_dot_encode(incoming->dots[i], &out);
    append(replica, &out);
}

void merge_log_join(struct merge_replica *replica, const struct mclock *clock,
                    enum mclock_closings closings)
{
    struct buf out = { 0 };

    buf_put_u8(&out, MERGE_LOG_JOIN);
    buf_put_u8(&out, closings == MCLOCK_CLOSE_ALL);
    mclock_encode(clock, &out);
    append(replica, &out);
}

void merge_log_erase(struct merge_replica *replica, struct slice entity, uint64_t number)
{
    struct buf out = { 0 };

    buf_put_u8(&out, MERGE_LOG_ERASE);
    buf_put_u8(&out, (uint8_t)entity.size);
    buf_append(&out, entity.data, entity.size);
    buf_put_compact(&out, number);
    append(replica, &out);
}

void merge_log_close(struct merge_replica *replica, uint64_t actor)
{
    struct buf out = { 0 };

    buf_put_u8(&out, MERGE_LOG_CLOSE);
    buf_put_u64(&out, actor);
    append(replica, &out);
}

void merge_log_sync(struct merge_replica *replica, bool begins)
{
    struct buf out = { 0 };

    buf_put_u8(&out, MERGE_LOG_SYNC);
    buf_put_u8(&out, begins);
    append(replica, &out);
}

void merge_log_name(struct merge_replica *replica, uint64_t actor, uint64_t member)
{
    struct buf out = { 0 };

    buf_put_u8(&out, MERGE_LOG_NAME);
    buf_put_u64(&out, actor);
    buf_put_u64(&out, member);
    append(replica, &out);
}

void merge_log_era(struct merge_replica *replica, uint16_t era)
{
    struct buf out = { 0 };

    buf_put_u8(&out, MERGE_LOG_ERA);
    buf_put_compact(&out, era);
    append(replica, &out);
}
