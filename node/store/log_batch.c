/* Records into batches, batches into segments. */
#include <stdlib.h>
#include <time.h>

#include "node/store/node_log_private.h"
#include "runtime/base/check.h"

void log_batch_init(struct log_batch *batch, uint32_t records_max)
{
    *batch = (struct log_batch){ .capacity = records_max };
    batch->records = mem_alloc(records_max * sizeof *batch->records);
    batch->promises = mem_alloc(records_max * sizeof *batch->promises);
}

void log_batch_deinit(struct log_batch *batch)
{
    free(batch->records);
    free(batch->promises);
}

bool log_batch_fits(const struct log_batch *batch, size_t payload_bytes, uint32_t bytes_max)
{
    if (batch->count == 0)
        return true;
    return batch->count < batch->capacity && batch->payload_bytes + payload_bytes <= bytes_max;
}

void log_batch_add(struct log_batch *batch, const struct record *record)
{
    CHECK(batch->count < batch->capacity);
    batch->records[batch->count++] = *record;
    batch->payload_bytes += record->payload.size;
}

uint8_t *log_batch_promise(struct log_batch *batch)
{
    CHECK(batch->count < batch->capacity);
    return batch->promises[batch->count];
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void log_batch_sync(struct node_log *log)
{
    struct log_writer *writer = &log->writer;

    if (writer->round_bytes == 0)
        return;
    uint64_t began_ns = now_ns();
    log_segment_sync(&log->segments, writer->active);
    uint64_t took_ns = now_ns() - began_ns;

    writer->durable_sequence = writer->last_sequence;
    writer->round_bytes = 0;
    pthread_mutex_lock(&log->stats_lock);
    log->stats.syncs++;
    log->stats.sync_ns += took_ns;
    if (took_ns > log->stats.sync_ns_max)
        log->stats.sync_ns_max = took_ns;
    pthread_mutex_unlock(&log->stats_lock);
}

/* Makes sure that the active segment has room, if need be by going on to the next one. */
static bool find_room(struct node_log *log, size_t size, enum log_room room)
{
    struct log_writer *writer = &log->writer;
    size_t left = log->config.segment_bytes - writer->offset;

    if (size + writer->reserve_bytes <= left)
        return true;
    if (size <= left && (room == LOG_ROOM_ALL || log_segments_ready(&log->segments)))
        return true;
    if (!log_segments_ready(&log->segments))
        return false;

    /* All of a segment is durable before the next one is begun: the scan counts on it. */
    log_batch_sync(log);
    struct log_segment *next = log_segments_take(&log->segments);
    CHECK(next != NULL && next->number > writer->active->number);
    writer->active = next;
    writer->offset = 0;
    atomic_store(&log->retain_changed, true);
    return true;
}

static void reserve_buffer(struct log_writer *writer, size_t size)
{
    if (size <= writer->buffer_bytes)
        return;
    free(writer->buffer);
    writer->buffer = log_block_alloc(size);
    writer->buffer_bytes = size;
}

static void take_in(struct node_log *log, struct log_batch *batch, uint32_t offset)
{
    uint64_t entries = 0;

    for (uint32_t i = 0; i < batch->count; i++) {
        const struct record *record = &batch->records[i];
        struct log_place place = {
            .segment = log->writer.active->number,
            .offset = offset + stream_to_byte(record->stream_offset),
            .bytes = (uint32_t)record->payload.size,
        };

        log_shard_record(log, record, place);
        entries += record->type == RECORD_ENTRY;
    }
    pthread_mutex_lock(&log->stats_lock);
    log->stats.batches++;
    log->stats.records += batch->count;
    log->stats.entries += entries;
    log->stats.written_bytes += log->writer.offset - offset;
    pthread_mutex_unlock(&log->stats_lock);
}

bool log_batch_write(struct node_log *log, struct log_batch *batch, enum log_room room)
{
    struct log_writer *writer = &log->writer;
    size_t size = batch_size(batch->count, batch->payload_bytes);
    uint64_t floor = writer->sequence_floor;

    if (!find_room(log, size, room))
        return false;
    reserve_buffer(writer, size);
    struct batch_header header = {
        .sequence = (writer->last_sequence > floor ? writer->last_sequence : floor) + 1,
        .prev_sequence = writer->last_sequence,
        .durable_sequence = writer->durable_sequence,
    };
    uint32_t offset = writer->offset;

    CHECK(batch_encode(&header, batch->records, batch->count, log->config.replica_id,
                       writer->buffer) == size);
    log_segment_write(&log->segments, writer->active, offset, writer->buffer, (uint32_t)size);
    writer->offset += (uint32_t)size;
    writer->round_bytes += (uint32_t)size;
    writer->last_sequence = header.sequence;
    take_in(log, batch, offset);
    batch->count = 0;
    batch->payload_bytes = 0;
    return true;
}
