/*
 * Which segments are dead. They die oldest first: a segment goes once no shard's oldest live entry
 * is in it, and what must outlive entries (promises, marks of damage) has been written again.
 */
#include "node/store/node_log_private.h"
#include "runtime/base/check.h"

static bool sticky_flush(struct node_log *log)
{
    if (log->writer.sticky.count == 0)
        return true;
    return log_batch_write(log, &log->writer.sticky, LOG_ROOM_ALL);
}

static bool sticky_add(struct node_log *log, uint32_t shard)
{
    struct log_batch *batch = &log->writer.sticky;

    if (!log_batch_fits(batch, PROMISE_BYTES, UINT32_MAX) && !sticky_flush(log))
        return false;
    struct record record = log_shard_sticky(log, shard, 0, log_batch_promise(batch));
    log_batch_add(batch, &record);
    return true;
}

/* What could not be written would be stale by the next time. */
static void sticky_drop(struct node_log *log)
{
    log->writer.sticky.count = 0;
    log->writer.sticky.payload_bytes = 0;
}

static bool write_damage_of(struct node_log *log, uint32_t number)
{
    struct log_shard *shard = &log->shards[number];

    pthread_mutex_lock(&shard->lock);
    bool unwritten = shard->damage_unwritten;
    shard->damage_unwritten = false;
    shard->damage_writing = unwritten;
    pthread_mutex_unlock(&shard->lock);
    return !unwritten || sticky_add(log, number);
}

/* Shards that were marked meanwhile are left to the next time. */
static void end_damage_writing(struct node_log *log, bool written)
{
    for (uint32_t i = 0; i < log->config.shard_count; i++) {
        struct log_shard *shard = &log->shards[i];

        pthread_mutex_lock(&shard->lock);
        shard->damage_unwritten |= shard->damage_writing && !written;
        shard->damage_writing = false;
        pthread_mutex_unlock(&shard->lock);
    }
}

bool log_damage_write(struct node_log *log)
{
    bool ok = true;

    if (!atomic_exchange(&log->damage_found, false))
        return false;
    for (uint32_t i = 0; i < log->config.shard_count && ok; i++)
        ok = write_damage_of(log, i);
    ok = ok && sticky_flush(log);
    end_damage_writing(log, ok);
    if (ok)
        return true;
    sticky_drop(log);
    atomic_store(&log->damage_found, true);
    return false;
}

static uint32_t oldest_live(struct node_log *log)
{
    uint32_t oldest = log->writer.active->number;

    for (uint32_t i = 0; i < log->config.shard_count; i++) {
        uint32_t segment = log_shard_oldest_segment(&log->shards[i]);

        if (segment < oldest)
            oldest = segment;
    }
    return oldest;
}

/* Afterwards no shard's newest PROMISE is in `number` or before. */
static bool copy_forward(struct node_log *log, uint32_t number)
{
    for (uint32_t i = 0; i < log->config.shard_count; i++) {
        struct log_shard *shard = &log->shards[i];

        pthread_mutex_lock(&shard->lock);
        bool here = shard->sticky_segment != 0 && shard->sticky_segment <= number;
        pthread_mutex_unlock(&shard->lock);
        if (here && !sticky_add(log, i))
            return false;
    }
    if (!sticky_flush(log))
        return false;
    log_batch_sync(log);
    return true;
}

bool log_recycle(struct node_log *log)
{
    if (!atomic_exchange(&log->retain_changed, false))
        return false;
    uint32_t live = oldest_live(log);
    bool freed = false;

    while (log->segments.used.first->number < live) {
        uint32_t number = log->segments.used.first->number;

        if (!copy_forward(log, number)) {
            sticky_drop(log);
            atomic_store(&log->retain_changed, true);
            return freed;
        }
        log_segments_retire_oldest(&log->segments);
        freed = true;
    }
    return freed;
}
